"""The learner's copies: cleared, never overwritten, and told when a page has changed."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from labkit import __main__ as command_line
from labkit.lesson import workspace
from labkit.lesson.workspace import WorkspaceError, start, work_folder


def write_page(checkout: Path, name: str, page_hash: str) -> None:
    code = {
        "cell_type": "code",
        "execution_count": 3,
        "id": "a",
        "metadata": {
            "tags": ["volatile"],
            "mystnb": {"image": {"alt": "the answer is 100"}},
        },
        "outputs": [
            {"output_type": "stream", "name": "stdout", "text": ["the answer is 100"]}
        ],
        "source": ["lk.trap()"],
    }
    text = {"cell_type": "markdown", "id": "b", "metadata": {}, "source": ["# Title"]}
    page = {
        "cells": [text, code],
        "metadata": {"labkit": {"page_sha256": page_hash, "version": "0.1.0"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    folder = checkout / "notebooks"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.ipynb").write_text(json.dumps(page), encoding="utf-8")


@pytest.fixture(autouse=True)
def no_work_folder(monkeypatch):
    monkeypatch.delenv("LABKIT_WORK", raising=False)


@pytest.fixture
def checkout(tmp_path):
    folder = tmp_path / "checkout"
    write_page(folder, "00_start", "one")
    write_page(folder, "02_tensors", "two")
    return folder


def read(path: Path) -> dict:
    return json.loads(path.read_text(encoding="utf-8"))


def test_copies_are_cleared_and_know_their_page(checkout):
    started = start(checkout=checkout)
    assert started.folder == checkout / "work"
    assert started.added == ("00_start", "02_tensors")
    text = (started.folder / "02_tensors.ipynb").read_text()
    assert "100" not in text
    page = json.loads(text)
    assert page["cells"][1]["outputs"] == []
    assert page["cells"][1]["execution_count"] is None
    assert page["cells"][1]["metadata"] == {"tags": ["volatile"]}
    assert page["metadata"]["labkit"]["page_sha256"] == "two"
    # the stored page is as it was
    assert "100" in (checkout / "notebooks" / "02_tensors.ipynb").read_text()
    assert [p.name for p in started.folder.iterdir() if p.suffix != ".ipynb"] == []


def test_nothing_is_overwritten(checkout):
    copy = start(checkout=checkout).folder / "02_tensors.ipynb"
    page = read(copy)
    page["cells"][0]["source"] = "# My notes"
    copy.write_text(json.dumps(page))
    again = start(checkout=checkout)
    assert again.added == again.changed == ()
    assert read(copy) == page


def test_two_that_start_at_once_leave_whole_pages_and_no_parts(checkout, tmp_path):
    for number in range(30):
        write_page(checkout, f"{number:02}_page", "same")
    pages = sorted(path.name for path in (checkout / "notebooks").glob("*.ipynb"))
    source = (
        "import sys; from pathlib import Path; sys.path.insert(0, sys.argv[1])\n"
        "import workspace\n"
        "print('ready', flush=True); input()\n"
        "workspace.start(None, *map(Path, sys.argv[2:]))\n"
    )
    # by its own path: labkit itself would bring torch, and the starts would not meet
    place = Path(workspace.__file__).parent
    for turn in range(3):
        folder = tmp_path / f"work{turn}"
        command = [sys.executable, "-c", source, place, checkout, folder]
        starts = [
            subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for _ in range(4)
        ]
        for program in starts:
            assert program.stdout.readline() == "ready\n"
        for program in starts:
            program.stdin.write("go\n")
            program.stdin.flush()
        said = [program.communicate(timeout=60)[1] for program in starts]
        assert [program.returncode for program in starts] == [0] * 4, said
        assert sorted(path.name for path in folder.iterdir()) == pages
        assert all(read(path)["cells"][1]["outputs"] == [] for path in folder.iterdir())


def test_other_outputs_are_no_change_but_another_page_is(checkout):
    start(checkout=checkout)
    stored = checkout / "notebooks" / "02_tensors.ipynb"
    page = read(stored)
    page["cells"][1]["outputs"] = []
    stored.write_text(json.dumps(page))
    assert start(checkout=checkout).changed == ()
    write_page(checkout, "02_tensors", "three")
    write_page(checkout, "03_autograd", "new")
    started = start(checkout=checkout)
    assert started.changed == ("02_tensors",)
    assert started.added == ("03_autograd",)
    assert "start --fresh 02_tensors" in str(started)
    assert read(started.folder / "02_tensors.ipynb")["metadata"]["labkit"] == {
        "page_sha256": "two",
        "version": "0.1.0",
    }


def test_a_fresh_page_keeps_every_old_copy(checkout):
    folder = start(checkout=checkout).folder
    old = (folder / "02_tensors.ipynb").read_text()
    write_page(checkout, "02_tensors", "three")
    started = start(["02"], checkout=checkout)
    assert started.renewed == {"02_tensors": "02_tensors_old.ipynb"}
    assert started.changed == started.added == ()
    assert (folder / "02_tensors_old.ipynb").read_text() == old
    new = read(folder / "02_tensors.ipynb")
    assert new["metadata"]["labkit"]["page_sha256"] == "three"
    again = start(["02_tensors"], checkout=checkout)
    assert again.renewed == {"02_tensors": "02_tensors_old2.ipynb"}
    assert (folder / "02_tensors_old.ipynb").read_text() == old


def test_a_copy_that_is_no_notebook_is_left_and_named(checkout):
    copy = start(checkout=checkout).folder / "02_tensors.ipynb"
    copy.write_text("not a notebook")
    assert start(checkout=checkout).changed == ("02_tensors",)
    assert copy.read_text() == "not a notebook"


def test_unknown_page_names_the_pages(checkout):
    with pytest.raises(WorkspaceError, match=r"07.*00_start, 02_tensors"):
        start(["07"], checkout=checkout)


def test_without_pages_it_says_what_to_do(tmp_path):
    with pytest.raises(WorkspaceError, match="clone the repository"):
        start(checkout=tmp_path)


def test_a_folder_that_cannot_be_made_is_named(checkout, tmp_path):
    in_the_way = tmp_path / "file"
    in_the_way.write_text("")
    with pytest.raises(WorkspaceError, match="LABKIT_WORK"):
        start(checkout=checkout, folder=in_the_way / "work")


def test_where_the_work_folder_is(checkout, tmp_path, monkeypatch):
    assert work_folder(checkout) == checkout / "work"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("os.access", lambda path, mode: False)
    assert work_folder(checkout) == tmp_path / "work"
    monkeypatch.setenv("LABKIT_WORK", str(tmp_path / "mine"))
    assert work_folder(checkout) == tmp_path / "mine"


def test_the_command_copies_the_real_pages(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("LABKIT_WORK", str(tmp_path / "mine"))
    assert command_line.main(["start"]) == 0
    said = capsys.readouterr().out
    assert "00_start" in said
    assert (tmp_path / "mine" / "00_start.ipynb").exists()
    assert command_line.main(["start", "--fresh", "77"]) == 1
    assert "no such page" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["[]", "5", "null", '{"metadata": []}', "[" * 100_000])
def test_a_copy_of_another_kind_of_json_is_left_and_named(checkout, text):
    folder = start(checkout=checkout).folder
    page = next(folder.glob("*.ipynb"))
    page.write_text(text)
    assert start(checkout=checkout).changed == (page.stem,)
    assert page.read_text() == text
