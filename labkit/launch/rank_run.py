"""Running a script on several local ranks with torchrun: `launch`."""

import contextlib
import importlib.util
import os
import subprocess
import sys
import time
import uuid
from pathlib import Path
from typing import Any

import torch

from labkit.launch.cellmodule import Cells
from labkit.launch.folders import own_folder
from labkit.launch.rank_output import failure, outputs, written
from labkit.launch.rank_processes import MARK, marked, stop
from labkit.launch.rank_result import Ranks
from labkit.launch.report import FOLDER, reports
from labkit.lesson.evidence import LabError

MOST_RANKS = 64
MOST_BYTES = 64 * 2**20  # of output, before a launch is stopped
POLL = 0.1  # seconds


def launch(source: str | Path, nproc: int = 2, timeout: float = 60) -> Ranks:
    """Run a script on `nproc` ranks of this machine under torchrun.

    A failing rank, the timeout and an Interrupt stop all ranks and whatever they have
    started; then the result's `problem` says why (an Interrupt goes on).  The scripts
    see this process's folder and cell modules, one thread each, and nothing else of it.
    So does the end of this process, where it is killed.  Files are written to a
    temporary folder, which is also the ranks' own, and goes.

    Args:
        source: the text of the script, or the path of one.
        nproc: ranks, 1 to 64; more than there are cores take turns.
        timeout: seconds until all ranks are stopped.

    Raises:
        LabError: an argument that cannot be used, a script that is no Python, or a torch
            without torchrun.

    >>> launch("import labkit as lk; lk.report(x=1)", nproc=2)[1]
    {'x': 1}
    """
    check(nproc, timeout)
    text = source.read_text(encoding="utf-8") if isinstance(source, Path) else source
    check_script(text)
    mark = uuid.uuid4().hex
    with own_folder() as folder:
        script, logs = folder / "ranks.py", folder / "logs"
        for part in (logs, folder / "reports"):
            part.mkdir()
        script.write_text(text, encoding="utf-8")
        start = time.monotonic()
        with (folder / "torchrun.log").open("wb") as log:
            process = subprocess.Popen(
                command(script, logs, nproc),
                stdin=subprocess.PIPE,  # whose end is this process's end
                stdout=log,
                stderr=subprocess.STDOUT,
                env=environment(folder, mark),
                start_new_session=True,  # an Interrupt of the page is not theirs
            )
            try:
                problem = wait(process, logs, timeout, mark)
            finally:
                stop(process, mark)
                if process.stdin is not None:
                    process.stdin.close()
        if not problem and process.returncode:
            said = (folder / "torchrun.log").read_text("utf-8", errors="replace")
            problem = failure(said, logs, script)
        return Ranks(
            reported=reports(folder / "reports", nproc),
            output=outputs(logs, nproc, script),
            problem=problem,
            seconds=time.monotonic() - start,
        )


def wait(
    process: "subprocess.Popen[bytes]", logs: Path, timeout: float, mark: str
) -> str:
    """Wait for torchrun; why it has to be stopped, or "" where it ended by itself."""
    end = time.monotonic() + timeout
    while True:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(POLL)
            return ""
        if time.monotonic() >= end:
            return f"not finished after {timeout:g} s{still_running(mark)}"
        if written(logs) > MOST_BYTES:
            return (
                f"the ranks wrote more than {MOST_BYTES // 2**20} MB and were stopped"
            )


def still_running(mark: str) -> str:
    """Which ranks had not ended, where /proc tells (Linux)."""
    ranks = sorted({int(rank) for rank in marked(mark).values() if rank is not None})
    if not ranks:
        return ""
    said = " and ".join(filter(None, [", ".join(map(str, ranks[:-1])), str(ranks[-1])]))
    return f": rank{'s' * (len(ranks) > 1)} {said} had not ended"


def command(script: Path, logs: Path, nproc: int) -> list[str]:
    """torchrun's command line: a free port, no restarts, each rank's output in a file."""
    return [
        *(sys.executable, "-m", "labkit.launch.rank_launcher", str(logs.parent)),
        *("--standalone", "--nproc-per-node", str(nproc), "--max-restarts", "0"),
        *("--local-addr", "127.0.0.1", "--monitor-interval", str(POLL)),
        *("--log-dir", str(logs), "--redirects", "3", str(script)),
    ]


def environment(folder: Path, mark: str) -> dict[str, str]:
    """The ranks' environment."""
    found = {
        **os.environ,
        MARK: mark,
        FOLDER: str(folder / "reports"),
        "TMPDIR": str(folder),
        "OMP_NUM_THREADS": "1",
        "PYTHONUNBUFFERED": "1",
        "PYTHONIOENCODING": "utf-8",
        "TORCH_CPP_LOG_LEVEL": "ERROR",
    }
    if os.name == "nt":
        found["USE_LIBUV"] = "0"  # torch's Windows wheels are built without it
    own = Path(__file__).resolve().parents[2]
    # ahead of the standard library, an installation's folder could hide parts of it
    places = [] if own.name in ("site-packages", "dist-packages") else [str(own)]
    places += [os.getcwd()] + ([str(Cells.folder)] if Cells.folder else [])
    kept = [os.environ["PYTHONPATH"]] if os.environ.get("PYTHONPATH") else []
    found["PYTHONPATH"] = os.pathsep.join([*places, *kept])
    return found


def check(nproc: Any, timeout: Any) -> None:
    """LabError for arguments that cannot be used."""
    if type(nproc) is not int or not 1 <= nproc <= MOST_RANKS:
        raise LabError(
            f"torchrun: nproc is a number of ranks from 1 to {MOST_RANKS}; {nproc!r} came"
        )
    if type(timeout) not in (int, float) or not 0 < timeout < 86_400:
        raise LabError(
            f"torchrun: timeout is a number of seconds, more than 0; {timeout!r} came"
        )
    if not has_torchrun():
        raise LabError(
            f"torchrun: torch {torch.__version__} was built without torch.distributed, "
            "so it has no torchrun"
        )


def has_torchrun() -> bool:
    if not torch.distributed.is_available():
        return False
    return importlib.util.find_spec("torch.distributed.run") is not None


def check_script(text: str) -> None:
    """LabError where the script is no Python: found here, and not by every rank."""
    try:
        compile(text, "ranks.py", "exec")
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None)
        where = f" in line {line}" if line else ""
        what = getattr(error, "msg", None) or error
        raise LabError(f"torchrun: the script is no Python{where}: {what}") from None
