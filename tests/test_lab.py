"""`make lab`: set-up that is done once, clear sentences, and the server's settings."""

import json
import re
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import lab
import pytest
from served import served
from traitlets.config.loader import PyFileConfigLoader
from tree import REPOSITORY

WIDGET = "application/vnd.jupyter.widget-view+json"


def test_an_old_python_gets_one_sentence(monkeypatch):
    lab.require_python((3, 11, 0))
    monkeypatch.setattr(lab.shutil, "which", lambda name: None)
    with pytest.raises(lab.SetupError, match=r"3\.11 or newer, and this is 3\.9: inst"):
        lab.require_python((3, 9, 18))


def test_conda_is_asked_for_what_pip_is():
    conda = {"torch": "pytorch", "matplotlib": "matplotlib-base"}
    asked = (lab.ROOT / "environment.yml").read_text(encoding="utf-8")
    text = (lab.ROOT / "requirements.txt").read_text(encoding="utf-8")
    wanted = re.findall(r"^([a-z][\w-]*)(\S*)", text, re.MULTILINE)
    assert len(wanted) >= 7
    for name, versions in wanted:
        line = f"- {conda.get(name, name)}{versions}"
        assert re.search(rf"^ *{re.escape(line)}\b", asked, re.MULTILINE), line


def test_a_newer_python_on_the_path_is_named(monkeypatch):
    monkeypatch.setattr(lab.shutil, "which", lambda name: name > "python3.11")
    monkeypatch.setattr(  # a shim for 3.13 and 3.14 is there, and starts nothing
        lab.subprocess, "call", lambda command, stderr: command[0] != "python3.12"
    )
    with pytest.raises(lab.SetupError, match=r"make lab PYTHON=python3\.12"):
        lab.require_python((3, 10, 1))


def test_old_pythons_can_read_the_script():
    # what they cannot read they would answer with a SyntaxError, not with a sentence
    import ast

    ast.parse(Path(lab.__file__).read_text(), feature_version=(3, 7))


@pytest.fixture
def empty(tmp_path, monkeypatch):
    """A checkout without .venv, where pip and venv are only noted."""
    for name in ("requirements.txt", "requirements-dev.txt", "constraints.txt"):
        (tmp_path / name).write_text("x\n")
    monkeypatch.setattr(lab, "ROOT", tmp_path)
    monkeypatch.setattr(lab, "VENV", tmp_path / ".venv")
    done = []

    def make(python):
        done.append("venv")
        lab.VENV.mkdir()

    monkeypatch.setattr(lab, "works", lambda python: lab.VENV.exists())
    monkeypatch.setattr(lab, "make_venv", make)
    monkeypatch.setattr(lab, "install", lambda python, name: done.append(name))
    return done


def test_the_environment_is_made_once(empty):
    lab.environment("learn")
    lab.environment("learn")
    assert empty == ["venv", "requirements.txt"]


def test_a_folder_that_has_moved_is_installed_from_anew(empty, tmp_path, monkeypatch):
    lab.environment("learn")
    moved = tmp_path / "moved"
    moved.mkdir()
    for path in list(tmp_path.iterdir()):
        if path != moved:
            path.rename(moved / path.name)
    monkeypatch.setattr(lab, "ROOT", moved)
    monkeypatch.setattr(lab, "VENV", moved / ".venv")
    lab.environment("learn")
    lab.environment("learn")
    assert empty == ["venv", "requirements.txt", "requirements.txt"]


def test_developing_covers_learning(empty):
    lab.environment("develop")
    lab.environment("learn")
    assert empty == ["venv", "requirements-dev.txt"]


@pytest.mark.parametrize("name", ["requirements.txt", "constraints.txt"])
def test_changed_requirements_are_installed(empty, name):
    lab.environment("learn")
    (lab.ROOT / name).write_text("y\n")
    lab.environment("learn")
    assert empty == ["venv", "requirements.txt", "requirements.txt"]


def test_a_failed_install_is_tried_again(empty, monkeypatch):
    def fail(python, name):
        raise lab.SetupError("no network")

    monkeypatch.setattr(lab, "install", fail)
    with pytest.raises(lab.SetupError):
        lab.environment("learn")
    assert not (lab.VENV / "labkit-installed.json").exists()


def test_without_the_venv_module_it_says_which_package(tmp_path, monkeypatch):
    monkeypatch.setattr(lab, "VENV", tmp_path / ".venv")
    monkeypatch.setattr(lab.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(lab.SetupError, match="apt install python3-venv"):
        lab.make_venv(tmp_path / "python")


def test_a_broken_environment_is_left_for_its_owner(tmp_path, monkeypatch):
    monkeypatch.setattr(lab, "VENV", tmp_path)
    with pytest.raises(lab.SetupError, match="remove that folder"):
        lab.make_venv(tmp_path / "python")
    assert tmp_path.exists()


@pytest.mark.parametrize(
    ("torch", "extra"), [("", []), ("cpu", ["--extra-index-url", lab.CPU_INDEX])]
)
def test_the_small_torch_is_one_variable(monkeypatch, torch, extra):
    calls = []
    monkeypatch.setenv("TORCH", torch)
    monkeypatch.setattr(lab.subprocess, "call", lambda c, **_: calls.append(c) or 0)
    lab.install(sys.executable, "requirements.txt")
    pip = [sys.executable, "-m", "pip", "install", "-r", "requirements.txt"]
    assert calls == [[*pip, "-c", "constraints.txt", *extra]]


def test_an_unknown_torch_is_refused(monkeypatch):
    monkeypatch.setenv("TORCH", "gpu")
    with pytest.raises(lab.SetupError, match="'gpu'"):
        lab.install(sys.executable, "requirements.txt")


def test_an_unknown_command_names_the_commands(capsys):
    assert lab.main(["tset"]) == 1
    assert "lab, test, build, check" in capsys.readouterr().err


def test_make_lists_its_commands():
    said = subprocess.run(
        ["make", "help"], cwd=REPOSITORY, capture_output=True, text=True, check=True
    ).stdout
    for command in ("lab", "test", "test-all", "build", "check"):
        assert f"make {command} " in said


def test_make_without_python_says_so():
    done = subprocess.run(
        ["make", "lab", "PYTHON=no-such-python"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert "There is no command no-such-python" in done.stderr


def test_saving_keeps_pictures_and_drops_controls():
    path = REPOSITORY / "tools" / "jupyter" / "jupyter_server_config.py"
    config = PyFileConfigLoader(str(path)).load_config()
    hook = config.ContentsManager.pre_save_hook
    page = {
        "metadata": {"widgets": {"state": {}}, "labkit": {"page": "02_tensors"}},
        "cells": [
            {"cell_type": "markdown", "source": "text"},
            {
                "cell_type": "code",
                "outputs": [
                    {"output_type": "display_data", "data": {WIDGET: {"model_id": 1}}},
                    {"output_type": "display_data", "data": {"image/png": "AAAA"}},
                    {"output_type": "stream", "text": "said"},
                ],
            },
        ],
    }
    hook(model={"type": "notebook", "content": page}, path="", contents_manager=None)
    assert page["metadata"] == {"labkit": {"page": "02_tensors"}}
    assert page["cells"][1]["outputs"] == [
        {"output_type": "display_data", "data": {"image/png": "AAAA"}},
        {"output_type": "stream", "text": "said"},
    ]
    # neither a file of another type nor a rename has a notebook in it
    hook(model={"type": "file", "content": "x"}, path="", contents_manager=None)
    hook(model={"type": "notebook"}, path="", contents_manager=None)


def test_a_running_lab_keeps_its_token_and_saves_without_controls(tmp_path):
    with served(tmp_path / "base") as server:
        assert server.url.startswith("http://127.0.0.1:")
        assert server.token
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(f"{server.url}api/contents", timeout=10)
        page = {
            "cells": [
                {
                    "cell_type": "code",
                    "execution_count": 1,
                    "id": "a",
                    "metadata": {},
                    "outputs": [
                        {
                            "output_type": "display_data",
                            "data": {WIDGET: {"model_id": "1"}},
                            "metadata": {},
                        }
                    ],
                    "source": "x",
                }
            ],
            "metadata": {"widgets": {}},
            "nbformat": 4,
            "nbformat_minor": 5,
        }
        body = json.dumps({"type": "notebook", "format": "json", "content": page})
        request = urllib.request.Request(
            f"{server.url}api/contents/saved.ipynb", body.encode(), method="PUT"
        )
        request.add_header("Authorization", f"token {server.token}")
        urllib.request.urlopen(request, timeout=10).close()
        with pytest.raises(urllib.error.HTTPError, match="404"):
            server.ask("GET", "api/terminals")
        shown = urllib.request.Request(f"{server.url}lab")
        shown.add_header("Authorization", f"token {server.token}")
        with urllib.request.urlopen(shown, timeout=10) as answer:
            assert "apputils-extension:announcements" in answer.read().decode()
    saved = json.loads((server.work / "saved.ipynb").read_text())
    assert saved["cells"][0]["outputs"] == []
    assert "widgets" not in saved["metadata"]


@pytest.mark.parametrize("text", ["", "{", "[]", "\x00"])
def test_a_damaged_note_of_what_is_installed_counts_as_nothing(empty, text):
    lab.environment("learn")
    (lab.VENV / "labkit-installed.json").write_text(text)
    before = len(empty)
    lab.environment("learn")
    assert len(empty) > before


def test_what_the_system_refuses_is_one_sentence(monkeypatch, capsys):
    def refuse(arguments):
        raise PermissionError(13, "Permission denied", ".venv")

    monkeypatch.setattr(lab, "check", refuse)
    assert lab.main(["check"]) == 1
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "Permission denied: '.venv'" in said
