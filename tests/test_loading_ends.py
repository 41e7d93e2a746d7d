"""`watch_loader` ended from outside: no process, shared memory or folder is left."""

import json
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from torch.utils.data import DataLoader

from labkit.launch.children import child_pids, ending_children

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
CHILD = Path(__file__).with_name("loading_child.py")


def alive(session):
    """The processes of a session that have not ended."""
    found = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            rest = stat.read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        if int(rest[3]) == session and rest[0] not in "ZX":
            found.add(int(stat.parent.name))
    return found


def until(true, seconds):
    end = time.monotonic() + seconds
    while not true() and time.monotonic() < end:
        time.sleep(0.05)
    return true()


@pytest.fixture
def ended(tmp_path):
    """A function that ends a watching program in a phase, and returns what it said."""
    started = []
    # short, for a socket's name has to fit: pytest's own folders are deep
    folder = Path(tempfile.mkdtemp())

    def end(phase, method, number, group):
        child = subprocess.Popen(
            [sys.executable, CHILD, tmp_path, phase, method],
            env={**os.environ, "TMPDIR": str(folder), "OMP_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
            start_new_session=True,
            text=True,
        )
        started.append(child.pid)
        assert until(lambda: (tmp_path / "here").exists() or child.poll(), 60)
        pids = alive(child.pid)
        # the program, and a worker at the least: each phase is one with workers
        assert len(pids) >= 2
        (os.killpg if group else os.kill)(child.pid, number)
        said, _ = child.communicate(timeout=60)
        assert until(lambda: not alive(child.pid), 30), "a process is left"
        left = [
            segment.name
            for segment in Path("/dev/shm").glob("torch_*")
            if int(segment.name.split("_")[1]) in pids
        ]
        assert left == []
        assert list(folder.iterdir()) == []
        return said

    yield end
    for pid in started:
        for left in alive(pid):
            os.kill(left, signal.SIGKILL)
    shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.parametrize("phase", ["start", "wait", "separate"])
@pytest.mark.parametrize(
    "method",
    [
        pytest.param(method, marks=[pytest.mark.slow] if method != "fork" else [])
        for method in multiprocessing.get_all_start_methods()
    ],
)
@pytest.mark.parametrize("group", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_an_interrupt(ended, phase, method, group):
    said = ended(phase, method, signal.SIGINT, group)
    assert json.loads(said) == {"children": [], "handler": True}


@pytest.mark.parametrize("phase", ["start", "wait", "separate"])
@pytest.mark.parametrize(
    "method", ["fork", pytest.param("spawn", marks=pytest.mark.slow)]
)
def test_a_kill(ended, phase, method):
    assert ended(phase, method, signal.SIGKILL, False) == ""


def interrupted(loader):
    with ending_children():
        batches = iter(loader)
        next(batches)
        raise KeyboardInterrupt


def test_an_interrupt_of_code_with_workers_stays_one():
    # torch's handler of SIGCHLD raises where it hears of a worker that was killed
    handler = signal.getsignal(signal.SIGCHLD)
    loader = DataLoader(range(8), 2, num_workers=2, multiprocessing_context="fork")
    next(iter(loader))
    before = child_pids()  # other tests' servers among them
    heard = signal.getsignal(signal.SIGCHLD)
    try:
        for _ in range(3):
            with pytest.raises(KeyboardInterrupt):
                interrupted(loader)
            assert child_pids() == before
        assert signal.getsignal(signal.SIGCHLD) is heard
    finally:
        signal.signal(signal.SIGCHLD, handler)
