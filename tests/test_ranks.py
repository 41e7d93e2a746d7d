"""``%%torchrun``: what ranks print and report, how a launch ends, what it leaves."""

import _thread
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from page import showing

from labkit.launch import rank_output, rank_run
from labkit.launch.cellmodule import run_module
from labkit.launch.rank_processes import exists, marked
from labkit.launch.rank_result import Ranks
from labkit.launch.rank_run import launch
from labkit.launch.ranks import options, register, show, torchrun_magic
from labkit.launch.report import FOLDER, portable, report, reports
from labkit.lesson.evidence import LabError, shell

SLEEP = "import time\ntime.sleep(60)\n"


@pytest.fixture(autouse=True)
def places(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Path, list[str]]]:
    """A temporary folder and marks of the test's own: both must be clear at its end."""
    folder, marks = tmp_path / "t", list[str]()
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))

    def environment(place: Path, mark: str, real: Any = rank_run.environment) -> Any:
        marks.append(mark)
        return real(place, mark)

    monkeypatch.setattr(rank_run, "environment", environment)
    yield folder, marks
    left = [p for p in folder.iterdir() if not p.name.startswith("labkit-cells-")]
    assert left == []
    if sys.platform == "linux":
        assert [marked(mark) for mark in marks] == [{}] * len(marks)


def instead_of_torchrun(monkeypatch: pytest.MonkeyPatch, source: str) -> None:
    """Let a short script stand for torchrun, to play what it can rarely be made to do."""
    command = [sys.executable, "-c", source]
    monkeypatch.setattr(rank_run, "command", lambda script, logs, nproc: command)


def run_cell(line: str, source: str) -> tuple[str, dict[str, Any]]:
    """Run the magic in a notebook; what it said, and the page's names afterwards."""
    with showing() as page:
        register()
        shell().run_cell_magic("torchrun", line, source)
        names = dict(shell().user_ns)
    return page.text, names


# --- with torchrun


def test_ranks_work_together_and_report(monkeypatch, capsys):
    run_module("ranks_share", "FACTOR = 10")
    source = """
import os, subprocess, sys
import torch, torch.distributed as dist
import labkit as lk
from ranks_share import FACTOR

dist.init_process_group("gloo")
rank = dist.get_rank()
total = torch.tensor([FACTOR * (rank + 1.0)])
dist.all_reduce(total)
print("é", rank, flush=True)
if rank == 1:
    print(("x" * 99 + "\\n") * 10_486)
lk.report(total=total, rank=rank)
lk.report(rank=[rank], world=dist.get_world_size())
# a process that outlives its rank, and a file in the temporary folder
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
open(os.path.join(os.environ["TMPDIR"], "left.txt"), "w").close()
dist.destroy_process_group()
"""
    ranks = launch(source, nproc=2, timeout=60)
    assert ranks.problem == ""
    assert [values["total"].item() for values in ranks] == [30.0, 30.0]
    assert [values["rank"] for values in ranks] == [[0], [1]]
    assert ranks[1]["world"] == len(ranks) == 2
    assert repr(ranks) == "<Ranks: 2, reported total, rank, world>"
    show(ranks)
    printed = capsys.readouterr().out
    assert printed.startswith("[rank 0] é 0\n[rank 1] é 1\n[rank 1] xxx")
    assert "more bytes are not shown" in printed
    assert len(printed) < 2 * (rank_output.HEAD + rank_output.TAIL)


def test_a_failing_rank_ends_the_others():
    source = f"""
import os, signal
print("started")
if os.environ["RANK"] == "1":
    raise KeyError("no such batch")
{SLEEP}"""
    text, names = run_cell("--out ranks --timeout 60", source)
    ranks = names["ranks"]
    said = "rank 1 ended with exit code 1: KeyError: 'no such batch'"
    assert ranks.problem == said
    assert text == f"**Stopped** · {said}."
    assert 'File "ranks.py", line 6' in ranks.output[1]  # the cell's line
    assert ranks.output[0] == "started"


def test_a_rank_that_never_arrives(monkeypatch, tmp_path):
    waiting = [tmp_path / "waiting0", tmp_path / "waiting1"]
    source = f"""
import os, pathlib, time
rank = os.environ["RANK"]
if rank == "0":
    import torch.distributed as dist
pathlib.Path({str(tmp_path)!r}, "waiting" + rank).touch()
if rank == "1":
    time.sleep(60)
dist.init_process_group("gloo")
"""

    class Clock:
        """It jumps past the timeout once both ranks wait, however long that takes."""

        @staticmethod
        def monotonic() -> float:
            jump = 1000 if all(path.exists() for path in waiting) else 0
            return time.monotonic() + jump

    monkeypatch.setattr(rank_run, "time", Clock)
    ranks = launch(source, nproc=2, timeout=90)
    assert all(path.exists() for path in waiting)
    assert ranks.problem.startswith("not finished after 90 s")
    if sys.platform == "linux":
        assert ranks.problem.endswith(": ranks 0 and 1 had not ended")


@pytest.mark.skipif(os.name == "nt", reason="taskkill ends the launcher as well")
def test_the_launching_process_is_killed(tmp_path, places):
    folder, _ = places
    source = f"""
import os, pathlib, sys, time
assert sys.stdin.read() == ""  # as from /dev/null
here = pathlib.Path({str(tmp_path)!r}, "rank" + os.environ["RANK"])
here.with_suffix(".part").write_text(f"{{os.getpid()}} {{os.getppid()}}")
here.with_suffix(".part").replace(here)
{SLEEP}"""
    program = f"from labkit.launch.rank_run import launch\nlaunch({source!r})"
    child = subprocess.Popen(
        [sys.executable, "-c", program],
        env={
            **os.environ,
            "TMPDIR": str(folder),
            "PYTHONPATH": str(Path(rank_run.__file__).parents[2]),
        },
    )
    notes = [tmp_path / "rank0", tmp_path / "rank1"]
    try:
        assert until(lambda: all(note.exists() for note in notes), 50)
    finally:
        child.kill()
        child.wait()
    pids = {int(pid) for note in notes for pid in note.read_text().split()}
    assert len(pids) == 3  # two ranks and their launcher
    assert until(lambda: not any(exists(pid) for pid in pids), 30)
    assert list(folder.iterdir()) == []


def until(true: Callable[[], bool], seconds: float) -> bool:
    end = time.monotonic() + seconds
    while not true() and time.monotonic() < end:
        time.sleep(0.05)
    return true()


# --- with a short script in torchrun's place


def test_an_interrupt_ends_all_and_goes_on(monkeypatch, tmp_path):
    started = tmp_path / "started"
    child = (
        f"import pathlib, time; pathlib.Path({str(started)!r}).touch(); time.sleep(60)"
    )
    # the child stands for a rank: it has a session of its own
    instead_of_torchrun(
        monkeypatch,
        "import subprocess, sys, time\n"
        f"subprocess.Popen([sys.executable, '-c', {child!r}], start_new_session=True)\n"
        "time.sleep(60)",
    )

    def interrupt() -> None:
        while not started.exists():
            time.sleep(0.02)
        _thread.interrupt_main()

    threading.Thread(target=interrupt, daemon=True).start()
    with pytest.raises(KeyboardInterrupt):
        launch("pass", timeout=60)
    assert started.exists()


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGTERM to ignore")
def test_ranks_that_ignore_being_asked_are_ended(monkeypatch):
    deaf = "import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(60)"
    instead_of_torchrun(
        monkeypatch,
        "import signal, subprocess, sys, time\n"
        "signal.signal(15, signal.SIG_IGN)\n"
        f"subprocess.Popen([sys.executable, '-c', {deaf!r}], start_new_session=True)\n"
        "time.sleep(60)",
    )
    ranks = launch("pass", timeout=0.5)
    assert ranks.problem.startswith("not finished after 0.5 s")
    assert ranks.reported == ({}, {})


def test_output_without_end(monkeypatch):
    monkeypatch.setattr(rank_run, "MOST_BYTES", 2**20)
    monkeypatch.setattr(rank_run, "command", writing)
    ranks = launch("pass", nproc=1, timeout=60)
    assert ranks.problem == "the ranks wrote more than 1 MB and were stopped"
    assert len(ranks.output[0]) < rank_output.HEAD + rank_output.TAIL + 100


def writing(script: Path, logs: Path, nproc: int) -> list[str]:
    place = logs / "x" / "attempt_0" / "0"
    place.mkdir(parents=True)
    path = str(place / "stdout.log")
    return [
        sys.executable,
        "-c",
        f"f = open({path!r}, 'w')\nwhile f.tell() < 2**26: f.write('y' * 99)\n{SLEEP}",
    ]


@pytest.mark.parametrize(
    ("says", "problem"),
    [
        (
            "OSError: [Errno 98] Address already in use",
            "torchrun found no free port: OSError: [Errno 98] Address already in use",
        ),
        ("ImportError: x", "torchrun could not run the ranks: ImportError: x"),
        ("", "torchrun could not run the ranks: it wrote nothing"),
    ],
)
def test_a_torchrun_that_does_not_start(monkeypatch, says, problem):
    instead_of_torchrun(monkeypatch, f"import sys; print({says!r}); sys.exit(1)")
    assert launch("pass").problem == problem


def test_strict_pages_stop_where_a_launch_fails(monkeypatch, strict):
    instead_of_torchrun(monkeypatch, "raise SystemExit(1)")
    with showing() as page:
        register()
        magic = shell().find_cell_magic("torchrun")
        with pytest.raises(LabError, match="it wrote nothing"):
            magic("", "pass")
        magic("--may-fail --out ranks", "pass")
        assert shell().user_ns["ranks"].problem
    assert "could not run the ranks" in page.text


def test_more_ranks_than_cores_are_said(monkeypatch, capsys):
    instead_of_torchrun(monkeypatch, "")
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    torchrun_magic("--nproc 4", "pass")
    assert capsys.readouterr().out == "4 ranks on 2 cores: they take turns.\n"


# --- what was written, and what torchrun said


def log(folder: Path, rank: int, text: str, name: str = "stdout.log") -> Path:
    path = folder / "id" / "attempt_0" / str(rank) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_what_bears_times_and_addresses_is_left_out(tmp_path):
    script = tmp_path / "ranks.py"
    log(tmp_path, 0, "[Gloo] Rank 0 is connected to 1 peer ranks.\nhello\n")
    errors = (
        "[W1130 04:01:02.123 socket.cpp:1] [c10d] no route\n"
        "[rank0]:[W1130 04:01:02.123 x.cpp:1] Warning: bye\n"
        f'[rank0]: File "{script}", line 3\n'
    )
    log(tmp_path, 0, errors, "stderr.log")
    found = rank_output.outputs(tmp_path, 2, script)
    assert found == ('hello\nFile "ranks.py", line 3', "")


def test_long_output_keeps_its_beginning_and_end(tmp_path):
    text = "".join(f"line {n}\n" for n in range(5_000))
    cut = rank_output.capped(log(tmp_path, 0, text))
    kept = [line for line in cut.splitlines() if line.startswith("line")]
    assert kept[0] == "line 0"
    assert kept[-1] == "line 4999"
    left = int(cut.partition("… ")[2].partition(" more bytes")[0].replace(",", ""))
    assert left + sum(len(line) + 1 for line in kept) == pytest.approx(len(text), abs=2)


def test_a_rank_that_was_killed(tmp_path):
    said = (
        "Failures:\n  <NO_OTHER_FAILURES>\nRoot Cause (first observed failure):\n[0]:\n"
        "  rank      : 3 (local_rank: 3)\n  exitcode  : -9 (pid: 5)\n"
    )
    found = rank_output.failure(said, tmp_path, tmp_path / "ranks.py")
    assert found == "rank 3 was ended by SIGKILL"


# --- report


def test_report_outside_a_launch_prints(monkeypatch, capsys):
    monkeypatch.delenv(FOLDER, raising=False)
    report(loss=0.5, name="a")
    assert capsys.readouterr().out == "reported loss = 0.5\nreported name = 'a'\n"


def test_reports_are_read_as_data(monkeypatch, tmp_path):
    monkeypatch.setenv(FOLDER, str(tmp_path))
    monkeypatch.setenv("RANK", "1")
    weight = torch.nn.Parameter(torch.ones(2))
    report(a=weight, b=np.float32(0.5), c={"x": (1, None, "s")}, d=np.arange(3))
    report(b=True)
    nothing, values = reports(tmp_path, 2)
    assert nothing == {}
    assert torch.equal(values["a"], torch.ones(2))
    assert not values["a"].requires_grad
    assert values["b"] is True
    assert values["c"] == {"x": (1, None, "s")}
    assert values["d"].tolist() == [0, 1, 2]
    assert [path.name for path in tmp_path.glob("1.*")] == ["1.pt"]


@pytest.mark.parametrize("value", [object(), {1, 2}, np.array(["a"]), [len]])
def test_report_refuses_what_is_no_data(value):
    with pytest.raises(LabError, match="x is a "):
        portable(value, "x")


# --- bad input


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("--nproc two", "invalid int value: 'two'"),
        ("--procs 2", "unrecognized arguments: --procs 2"),
        ("--out 2x", "NAME is a variable's, and '2x' came"),
        ("--out 'a", "No closing quotation"),
        ("4", "unrecognized arguments: 4"),
    ],
)
def test_options_that_are_none(line, says):
    with pytest.raises(LabError) as refused:
        options(line)
    assert says in str(refused.value)
    assert str(refused.value).startswith("%%torchrun [--nproc N]")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"nproc": 0}, "from 1 to 64; 0 came"),
        ({"nproc": 65}, "from 1 to 64; 65 came"),
        ({"nproc": True}, "True came"),
        ({"timeout": 0}, "more than 0; 0 came"),
        ({"timeout": float("nan")}, "nan came"),
    ],
)
def test_arguments_that_cannot_be_used(arguments, says):
    with pytest.raises(LabError, match=says):
        launch("pass", **arguments)


def test_a_script_that_is_no_python():
    with pytest.raises(LabError, match=r"no Python in line 2: "):
        launch("x = 1\nx = = 2\n")


def test_a_torch_without_torchrun(monkeypatch):
    monkeypatch.setattr(torch.distributed, "is_available", lambda: False)
    with pytest.raises(LabError, match="has no torchrun"):
        launch("pass")


def test_ranks_are_counted_and_gone_through():
    ranks = Ranks(({"a": 1}, {"b": 2}), ("", ""), "rank 1 failed", 1.0)
    assert len(ranks) == 2
    assert list(ranks) == [{"a": 1}, {"b": 2}]
    assert repr(ranks) == "<Ranks: 2, reported a, b; rank 1 failed>"
