"""What launches and page runs leave behind while other programs keep the cores busy.

`python -m benchmarks.launch_trials` makes 20 launches on 2 and 20 on 4 ranks beside one
busy core, and looks after each for processes and files that stayed.  With
`--pages 06_multi_gpu 07_checkpoints` it runs whole pages instead, `--runs` times each.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import psutil

from labkit.launch.ranks import launch

MARK = "LABKIT_TRIAL"  # an environment variable that all started processes inherit
REPOSITORY = Path(__file__).resolve().parents[1]
# All ranks meet twice: where one hangs or joins another launch's, the sums are wrong.
SCRIPT = """
import labkit as lk
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
total = torch.ones(1000) * (dist.get_rank() + 1)
dist.all_reduce(total)
dist.barrier()
lk.report(total=total[0].item())
dist.destroy_process_group()
"""


@contextmanager
def busy(cores: int) -> Iterator[None]:
    """Keep a number of cores busy with other processes."""
    endless = [sys.executable, "-c", "while True: pass"]
    spinning = [subprocess.Popen(endless) for _ in range(cores)]
    try:
        yield
    finally:
        for process in spinning:
            process.kill()
            process.wait()


def left(before: set[str], spinning: set[int]) -> list[str]:
    """Name what runs have left: processes that they have started, and new files."""
    own = {os.getpid(), *spinning}
    stayed = [p.pid for p in psutil.process_iter() if p.pid not in own and marked(p)]
    files = set(os.listdir(tempfile.gettempdir())) - before
    return [f"process {pid}" for pid in stayed] + sorted(files)


def marked(process: psutil.Process) -> bool:
    """Tell whether a process has inherited this one's mark."""
    try:
        return process.environ().get(MARK) == os.environ[MARK]
    except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
        return False


def launched(ranks: int) -> Callable[[], str]:
    """Return a run of one launch, which gives what went wrong, or an empty text."""
    wanted = [{"total": ranks * (ranks + 1) / 2}] * ranks

    def run() -> str:
        result = launch(SCRIPT, nproc=ranks)
        said = result.problem or ("" if list(result) == wanted else "wrong sums")
        return str(said)

    return run


def page(name: str) -> Callable[[], str]:
    """Return a run of one whole page, in a process of its own, with answers filled in."""
    code = (
        "import sys; sys.path.insert(0, 'tools'); from execute import run_page; "
        "from pages import read_source; from tree import Tree; tree = Tree(); "
        f"source = read_source(tree.source({name!r})); "
        "run_page(source, tree, {'solve': True}, timeout_s=240)"
    )

    def run() -> str:
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=REPOSITORY,
            capture_output=True,
            text=True,
            check=False,
        )
        return done.stderr.strip()[-300:] if done.returncode else ""

    return run


def trial(name: str, run: Callable[[], str], runs: int) -> None:
    """Print a row: seconds, failures, and what was left after a run."""
    spinning = {child.pid for child in psutil.Process().children()}
    before = set(os.listdir(tempfile.gettempdir()))
    seconds, failed, stayed = [], [], set()
    for _ in range(runs):
        start = time.monotonic()
        said = run()
        seconds.append(time.monotonic() - start)
        failed += [said] if said else []
        stayed.update(left(before, spinning))
    print(
        f"| {name} | {runs} | {min(seconds):.1f} | {median(seconds):.1f} | "
        f"{max(seconds):.1f} | {len(failed)} | {len(stayed)} |",
        *failed,
        *sorted(stayed),
        sep="\n",
        flush=True,
    )


def main() -> None:
    """Print a table of the trials."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20, help="runs of each kind")
    parser.add_argument("--busy", type=int, default=1, help="cores kept busy")
    parser.add_argument("--pages", nargs="*", default=[], help="pages to run instead")
    asked = parser.parse_args()
    os.environ[MARK] = uuid.uuid4().hex
    kinds = {f"{n} ranks": launched(n) for n in (2, 4)}
    if asked.pages:
        kinds = {name: page(name) for name in asked.pages}
    with tempfile.TemporaryDirectory(prefix="lab") as folder, busy(asked.busy):
        # theirs alone: other programs write to the system's
        os.environ["TMPDIR"] = tempfile.tempdir = folder
        table(kinds, asked.runs)


def table(kinds: dict[str, Callable[[], str]], runs: int) -> None:
    """Print a row for each kind of run."""
    print("| what | runs | shortest, s | median, s | longest, s | failed | left |")
    print("|---|--:|--:|--:|--:|--:|--:|")
    for name, run in kinds.items():
        trial(name, run, runs)


if __name__ == "__main__":
    main()
