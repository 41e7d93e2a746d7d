"""``%%torchrun``: a cell as a script that several ranks run."""

import argparse
import os
import shlex
from typing import Any, NoReturn

from labkit.launch.rank_result import Ranks
from labkit.launch.rank_run import launch
from labkit.lesson.evidence import LabError, literal, page_call, say, shell, strict

USAGE = "%%torchrun [--nproc N] [--timeout S] [--out NAME] [--may-fail]"


class Options(argparse.ArgumentParser):
    """The magic's options, whose mistakes are the caller's."""

    def error(self, message: str) -> NoReturn:
        raise LabError(f"{USAGE}; {message}")


def options(line: str) -> argparse.Namespace:
    """The options in the magic's line; LabError for one that it has not."""
    parser = Options(prog="%%torchrun", add_help=False, allow_abbrev=False)
    parser.add_argument("--nproc", type=int, default=2)
    parser.add_argument("--timeout", type=float, default=60.0)
    parser.add_argument("--out")
    parser.add_argument("--may-fail", action="store_true")
    try:
        found = parser.parse_args(shlex.split(line))
    except ValueError as error:  # a quotation mark without its other
        raise LabError(f"{USAGE}; {error}") from None
    if found.out is not None and not found.out.isidentifier():
        raise LabError(f"{USAGE}; NAME is a variable's, and {found.out!r} came")
    return found


def register() -> None:
    """Make ``%%torchrun`` known to IPython; does nothing elsewhere."""
    running = shell()
    if running is not None:
        running.register_magic_function(torchrun_magic, "cell", "torchrun")


@page_call
def torchrun_magic(line: str, cell: str) -> None:
    """Run the cell on several ranks; print what each wrote, in rank order.

    `--nproc` ranks (2), stopped after `--timeout` seconds (60); `--out` names a variable
    that gets the `Ranks`: what each rank reported.  Where a rank fails or the time is
    over the page says so and goes on; under LABKIT_STRICT=1 that raises, unless the line
    has `--may-fail`.
    """
    chosen = options(line)
    cores = os.cpu_count() or 1
    if chosen.nproc > cores:
        print(f"{chosen.nproc} ranks on {cores} cores: they take turns.")
    # a comment for the magic's own line, so that line numbers are the cell's
    source = f"# %%torchrun {line}\n{cell}"
    ranks = launch(source, nproc=chosen.nproc, timeout=chosen.timeout)
    show(ranks)
    if chosen.out:
        running: Any = shell()
        running.user_ns[chosen.out] = ranks
    if ranks.problem:
        if strict() and not chosen.may_fail:
            raise LabError(f"torchrun: {ranks.problem}")
        say(f"**Stopped** · {literal(ranks.problem)}.")


def show(ranks: Ranks) -> None:
    """Print what the ranks wrote, one rank after the other."""
    for rank, text in enumerate(ranks.output):
        for line in text.splitlines():
            print(f"[rank {rank}] {line}")
