"""Progress is kept: by several kernels at once, over kills, and over a broken file."""

import contextlib
import os
import re
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from labkit.lesson import progress, registry, session, store
from labkit.lesson.checks import progress_file
from labkit.lesson.evidence import LabError
from labkit.lesson.session import Session


@pytest.fixture(autouse=True)
def fresh_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "_session", Session(2))


def new_session(monkeypatch: pytest.MonkeyPatch, **options: bool) -> None:
    monkeypatch.setattr(session, "_session", Session(2, **options))


# --- what is kept --------------------------------------------------------------------


def test_the_last_outcome_counts_and_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    progress.record("exercise", "2.1-batch", "failed")
    progress.record("exercise", "2.1-batch", "passed")
    progress.record("trap", "2.1-batch", "run")
    new_session(monkeypatch)
    assert progress.latest() == {
        ("exercise", "2.1-batch"): "passed",
        ("trap", "2.1-batch"): "run",
    }
    assert progress.latest("trap") == {("trap", "2.1-batch"): "run"}


def test_a_prediction_is_found_again(monkeypatch: pytest.MonkeyPatch) -> None:
    assert progress.predicted("2.1-shared-memory") is None
    progress.record("prediction", "2.1-shared-memory", "other", "a copy")
    progress.record("prediction", "2.1-shared-memory", "right", "one `block` | ×")
    progress.record("prediction", "2.1-other", "other", "no")
    new_session(monkeypatch)
    assert progress.predicted("2.1-shared-memory") == "one `block` | ×"


def test_what_is_chosen_after_the_result_does_not_count() -> None:
    for slug, outcomes in {
        "changed": ["other", "right", "run", "other"],
        "mended": ["other", "run", "fixed", "right"],
        "late": ["run", "other", "right"],
        "again": ["run", "run", "right", "run", "other"],
        "none": ["run"],
    }.items():
        for outcome in outcomes:
            kind = "trap" if outcome in ("run", "fixed") else "prediction"
            progress.record(kind, slug, outcome)
    assert progress.answers() == {
        "changed": "right",
        "mended": "other",
        "late": "other",
        "again": "right",
    }


def test_solved_pages_keep_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    new_session(monkeypatch, solve=True)
    progress.record("exercise", "2.1-batch", "passed")
    assert progress.latest() == {}


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(LabError, match="kind is one of prediction, trap, exercise"):
        progress.record("quiz", "2.1-batch", "passed")


# --- where it is kept ------------------------------------------------------------------


def test_the_folder_can_be_chosen(home: Path) -> None:
    progress.record("trap", "2.1-a", "run")
    assert (home / "progress.sqlite").is_file()


@pytest.mark.parametrize(
    ("platform", "variable", "value", "expected"),
    [
        ("linux", "XDG_DATA_HOME", "/data", "/data/pytorch-pitfall-lab"),
        ("linux", "XDG_DATA_HOME", "", "~/.local/share/pytorch-pitfall-lab"),
        ("darwin", "", "", "~/Library/Application Support/pytorch-pitfall-lab"),
        ("win32", "LOCALAPPDATA", "/local", "/local/pytorch-pitfall-lab"),
        ("win32", "LOCALAPPDATA", "", "~/AppData/Local/pytorch-pitfall-lab"),
    ],
)
def test_each_platform_has_its_place(
    monkeypatch: pytest.MonkeyPatch,
    platform: str,
    variable: str,
    value: str,
    expected: str,
) -> None:
    monkeypatch.delenv("LABKIT_HOME")
    monkeypatch.setattr(sys, "platform", platform)
    if variable:
        monkeypatch.setenv(variable, value)
    assert store.home() == Path(expected).expanduser()


# --- what can go wrong -----------------------------------------------------------------


@pytest.mark.parametrize("damage", ["all of it", "its middle"])
def test_a_damaged_file_is_kept_aside_and_a_new_one_started(
    home: Path, damage: str, capsys: pytest.CaptureFixture[str]
) -> None:
    progress.record("trap", "2.1-a", "run", "x" * 20_000)
    file = home / "progress.sqlite"
    if damage == "all of it":
        file.write_bytes(b"not a database at all, but long enough" * 10)
    else:
        content = bytearray(file.read_bytes())
        content[2048:-1] = b"\xff" * (len(content) - 2049)
        file.write_bytes(bytes(content))
    damaged = file.read_bytes()

    progress.record("trap", "2.2-a", "run")
    assert progress.latest() == {("trap", "2.2-a"): "run"}
    (aside,) = home.glob("progress.sqlite.corrupt-*")
    assert aside.read_bytes() == damaged
    told = capsys.readouterr().out
    assert told.count("the progress file was damaged") == 1
    assert aside.name in told


def test_a_folder_that_cannot_be_made_is_told_once(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("LABKIT_HOME", str(tmp_path / "file" / "home"))
    progress.record("trap", "2.1-a", "run")
    progress.record("trap", "2.1-b", "run")
    assert capsys.readouterr().out.count("cannot be used") == 1
    # the page goes on with what this session knows
    assert progress.latest("trap") == {
        ("trap", "2.1-a"): "run",
        ("trap", "2.1-b"): "run",
    }
    new_session(monkeypatch)
    progress.record("trap", "2.1-a", "run")
    assert "cannot be used" in capsys.readouterr().out


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="needs POSIX permissions")
def test_a_read_only_file_is_told_once_and_untouched(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        monkeypatch.setenv("LABKIT_HOME", folder)
        progress.record("trap", "2.1-a", "run")
        file = Path(folder) / "progress.sqlite"
        before = file.read_bytes()
        file.chmod(0o444)
        Path(folder).chmod(0o555)
        with as_nobody():
            progress.record("trap", "2.1-b", "run")
            progress.record("trap", "2.1-c", "run")
            seen = progress.latest()
            doctors = progress_file()
        assert file.read_bytes() == before
        assert not doctors.ok
        assert "set LABKIT_HOME" in doctors.says
        Path(folder).chmod(0o755)
    told = capsys.readouterr().out
    assert told.count("cannot be used (attempt to write a readonly database)") == 1
    assert [item for _, item in seen] == ["2.1-a", "2.1-b", "2.1-c"]


@contextlib.contextmanager
def as_nobody() -> Iterator[None]:
    """Root may write anything: be someone else for a while."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_a_locked_file_is_told_once_and_written_later(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    progress.record("trap", "2.1-a", "run")
    with contextlib.closing(sqlite3.connect(home / "progress.sqlite")) as other:
        other.execute("BEGIN EXCLUSIVE")
        progress.record("trap", "2.1-b", "run")
        progress.record("trap", "2.1-c", "run")
        assert progress.predicted("2.1-a") is None
        told = capsys.readouterr().out
        assert told.count("is busy: what you did is written a little later") == 1
        other.rollback()
    progress.record("trap", "2.1-d", "fixed")
    new_session(monkeypatch)
    assert [item for _, item in progress.latest()] == [
        "2.1-a",
        "2.1-b",
        "2.1-c",
        "2.1-d",
    ]


LATE = """
from labkit.lesson import progress
progress.record("trap", "2.1-b", "run")
print("waits", flush=True)
input()
"""


def test_what_waits_when_the_kernel_ends_is_written_then(home: Path) -> None:
    progress.record("trap", "2.1-a", "run")
    command = [sys.executable, "-c", LATE]
    with contextlib.closing(sqlite3.connect(home / "progress.sqlite")) as other:
        other.execute("BEGIN EXCLUSIVE")
        late = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert late.stdout is not None
        while late.stdout.readline() not in ("waits\n", ""):
            continue
        other.rollback()
    late.communicate("\n", timeout=60)
    assert late.returncode == 0
    assert [item for _, item in progress.latest()] == ["2.1-a", "2.1-b"]


WRITER = """
import sys
from labkit.lesson import progress
from labkit.lesson.session import current
print("ready", flush=True)
for n in range(10**9):
    progress.record("trap", f"{sys.argv[1]}-{n}", "run")
    if not current().note("progress")["waiting"]:
        print("kept", n, flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="kills by signal")
def test_two_writers_that_are_killed_lose_nothing_they_had_written(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    for turn in range(2):
        names = [f"{turn}.{k}" for k in range(2)]
        writers = [writer(name) for name in names]
        for process in writers:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        time.sleep(0.5)
        for name, process in zip(names, writers, strict=True):
            process.send_signal(signal.SIGKILL)
            lines = process.communicate()[0].splitlines(keepends=True)
            kept = [int(x.split()[1]) for x in lines if re.fullmatch(r"kept \d+\n", x)]
            told += [f"{name}-{n}" for n in range(max(kept, default=-1) + 1)]
    assert len(told) > 10
    new_session(monkeypatch)
    found = {item for _, item in progress.latest("trap")}
    assert found >= set(told)
    assert not list(home.glob("*.corrupt-*"))


def writer(name: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, name],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])},
    )


# --- the table -----------------------------------------------------------------------


@dataclass
class Item:
    id: str
    slug: str = ""
    number: str = ""


@pytest.fixture
def two_chapters(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chapter 2 with two traps and an exercise; chapter 0 with a trap; 3 is empty."""
    traps = {
        0: [Item("", "0-first", "0.1.1")],
        2: [Item("", "2.1-a", "2.1.1"), Item("", "2.1-b", "2.1.2")],
    }
    exercises = {2: [Item("2.1-batch")]}
    monkeypatch.setattr(progress, "chapters", lambda: [0, 2, 3])
    monkeypatch.setattr(
        progress,
        "chapter_list",
        lambda kind, n: (traps if kind == "trap" else exercises).get(n, []),
    )


def test_the_table_counts(
    two_chapters: None, capsys: pytest.CaptureFixture[str]
) -> None:
    progress.record("prediction", "2.1-a", "right", "one")
    progress.record("prediction", "2.1-b", "right", "one")
    progress.record("prediction", "2.1-b", "other", "two")
    progress.record("trap", "2.1-a", "run")
    progress.record("trap", "2.1-a", "fixed")
    progress.record("trap", "2.1-a", "run")  # once more: it stays fixed
    progress.record("trap", "0-first", "run")
    progress.record("exercise", "2.1-batch", "passed")
    progress.progress()
    assert capsys.readouterr().out.splitlines() == [
        "chapter · predictions right · traps run · fixed · exercises passed",
        "00 Start here · none yet · 1 of 1 · 0 of 1 · 0 of 0",
        "02 Tensors · 1 of 2 · 1 of 2 · 1 of 2 · 1 of 1",
    ]


def test_one_chapter_names_what_is_open(
    two_chapters: None, capsys: pytest.CaptureFixture[str]
) -> None:
    progress.record("trap", "2.1-a", "run")
    progress.progress(2)
    told = capsys.readouterr().out
    assert "Traps not run yet: 2.1.2; exercises still open: 2.1-batch." in told
    assert "Start here" not in told
    progress.record("trap", "2.1-b", "run")
    progress.record("exercise", "2.1-batch", "passed")
    progress.progress(2)
    assert "Nothing is open on this page." in capsys.readouterr().out


@pytest.mark.parametrize("chapter", [3, 77, "2", None])
def test_a_chapter_that_is_not_there_is_told(
    two_chapters: None, chapter: int, capsys: pytest.CaptureFixture[str]
) -> None:
    progress.progress(chapter)
    told = capsys.readouterr().out
    assert (f"chapter is one of 0, 2; {chapter!r} came" in told) == (
        chapter is not None
    )


def test_the_chapters_there_are_have_titles() -> None:
    titles = {number: progress.title(number) for number in registry.chapters()}
    assert titles[2] == "Tensors"
    assert all(titles.values())
