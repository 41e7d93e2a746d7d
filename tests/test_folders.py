"""Temporary folders: gone with the block, and later where their process was killed."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest

from labkit.launch import folders
from labkit.launch.folders import LOCK, make_folder, own_folder, remove_stale

ROOT = Path(folders.__file__).parents[2]
PROGRAMS: list["subprocess.Popen[str]"] = []  # of the test that runs
FORK = pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")


@pytest.fixture(autouse=True)
def temporary(monkeypatch):
    """A temporary folder of the test's own, for its programs too.

    Its path is short, as a socket's has to be: pytest's own folders are deep.
    """
    folder = Path(tempfile.mkdtemp()).resolve()
    monkeypatch.setattr(folders.tempfile, "tempdir", str(folder))
    for name in ("TMPDIR", "TEMP", "TMP"):
        monkeypatch.setenv(name, str(folder))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    yield folder
    while PROGRAMS:
        PROGRAMS.pop().kill()
    shutil.rmtree(folder, ignore_errors=True)


def started(source):
    """A program that has run up to its first printed line, and that line.

    One that prints none within a minute is ended.
    """
    program = subprocess.Popen(
        [sys.executable, "-c", source],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    PROGRAMS.append(program)
    late = threading.Timer(60, program.kill)
    late.start()
    line = program.stdout.readline().strip()
    late.cancel()
    return program, line


def kill(program):
    program.kill()
    program.communicate(timeout=60)


def test_a_folder_goes_with_its_block(temporary):
    def fails():
        with own_folder("save-") as folder:
            (folder / "part").mkdir()
            assert folder.name.startswith("labkit-save-")
            raise KeyError

    with pytest.raises(KeyError):
        fails()
    assert list(temporary.iterdir()) == []


def test_a_killed_owner_s_folder_goes_and_a_living_one_s_stays(temporary):
    source = (
        "from labkit.launch.folders import make_folder\n"
        "print(make_folder('cells-'), flush=True)\ninput()\n"
    )
    program, name = started(source)
    with own_folder() as own:
        try:
            remove_stale()
            assert {path.name for path in temporary.iterdir()} == {
                Path(name).name,
                own.name,
            }
        finally:
            kill(program)
        assert Path(name).is_dir()
        remove_stale()
        assert [path.name for path in temporary.iterdir()] == [own.name]


@FORK
def test_a_folder_stays_while_a_forked_child_may_use_it(temporary):
    source = """
import os, sys, time
from labkit.launch.folders import make_folder
folder = make_folder()
child = os.fork()
if child:
    print(child, flush=True)
time.sleep(300)
"""
    program, child = started(source)
    # the child holds the program's output open
    program.kill()
    program.wait(60)
    remove_stale()
    assert len(list(temporary.iterdir())) == 1
    os.kill(int(child), 9)
    program.communicate(timeout=60)  # until the child has ended
    remove_stale()
    assert list(temporary.iterdir()) == []


def test_what_labkit_has_not_made_stays(temporary):
    (temporary / "labkit-mine").mkdir()
    (temporary / "labkit-file").touch()
    beginning = temporary / "labkit-beginning"  # its owner has not locked it yet
    beginning.mkdir()
    (beginning / LOCK).touch()
    other = temporary / "other"
    other.mkdir()
    (other / LOCK).write_text("locked")
    names = {path.name for path in temporary.iterdir()}
    if hasattr(os, "symlink") and os.name != "nt":
        (temporary / "labkit-link").symlink_to(other)
        names.add("labkit-link")
    remove_stale()
    assert {path.name for path in temporary.iterdir()} == names
    assert (other / LOCK).exists()


@FORK
def test_sigterm_ends_a_process_without_its_folders_and_its_child_at_once(temporary):
    source = """
import os, time
from labkit.launch.folders import clear_at_sigterm, make_folder
clear_at_sigterm()
make_folder()
child = os.fork()
if child:
    print(child, flush=True)
    os.waitpid(child, 0)
    print(len(os.listdir(os.environ["TMPDIR"])), flush=True)
time.sleep(300)
"""
    program, child = started(source)
    os.kill(int(child), signal.SIGTERM)
    assert program.stdout.readline().strip() == "1"
    program.terminate()
    program.communicate(timeout=60)
    assert program.returncode == -signal.SIGTERM
    assert list(temporary.iterdir()) == []


@FORK
@pytest.mark.parametrize("killed", [False, True])
def test_workers_leave_no_folder_of_multiprocessing_s(temporary, killed):
    source = """
import os, torch
from pathlib import Path
from torch.utils.data import DataLoader
from labkit.launch.folders import keep_sockets_here

keep_sockets_here()
loader = DataLoader(torch.zeros(8, 4), 2, num_workers=2,
                    multiprocessing_context="fork", persistent_workers=True)
list(loader)
here = Path(os.environ["TMPDIR"])
sockets = len(list(here.glob("labkit-*/listener-*")))
print(sockets, len(list(here.iterdir())), flush=True)
input()
"""
    program, said = started(source)
    assert said == "2 1"  # a socket for each worker, all in one folder
    if killed:
        program.kill()
        program.communicate(timeout=60)  # until the workers have ended
        assert len(list(temporary.iterdir())) == 1
        remove_stale()
    else:
        program.communicate("\n", timeout=60)
        assert program.returncode == 0
    assert list(temporary.iterdir()) == []


@FORK
def test_where_no_socket_would_fit_multiprocessing_keeps_its_own_way(
    temporary, monkeypatch
):
    deep = temporary / ("d" * 90)
    deep.mkdir()
    monkeypatch.setattr(folders.tempfile, "tempdir", str(deep))
    config = {}
    monkeypatch.setitem(folders.process.current_process().__dict__, "_config", config)
    folders.keep_sockets_here()
    assert config == {}
    assert list(deep.iterdir()) == []


def test_a_folder_that_cannot_be_locked_is_not_taken_for_stale(temporary, monkeypatch):
    monkeypatch.setattr(folders, "locked", lambda file: False)
    folder = make_folder()
    monkeypatch.undo()
    monkeypatch.setattr(folders.tempfile, "tempdir", str(temporary))
    remove_stale()
    assert folder.is_dir()
    folders.remove_folder(folder)
    assert not folder.exists()
