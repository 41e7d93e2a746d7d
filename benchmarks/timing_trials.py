"""How often `compare` and its peers see a difference: where none is, and where one is.

Run alone: `python -m benchmarks.timing_trials` (about six minutes).
"""

import os
import subprocess
import sys
import time
import timeit
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from statistics import fmean

import torch
from torch.utils.benchmark import Timer, set_torch_threads

from labkit.measure.judgement import DEAD_ZONE
from labkit.measure.timing import compare

Function = Callable[[], None]

SIZES = {"50 µs": 10, "1 ms": 200}
"""Additions in one call, by what the call takes on a quiet machine."""

SECONDS = 0.3
"""Measuring time that every method gets for one pair: what `compare` takes unasked."""

REPEATS = 7
COMPARE, BEST, MEAN, TORCH = (
    "`compare`",
    f"`timeit`, best of {REPEATS}",
    f"`timeit`, mean of {REPEATS}",
    "`torch.utils.benchmark`, median",
)

# A spinning process that ends with its parent, however that one ends: its standard
# input closes then.
_SPIN = """
import os, sys, threading
def watch():
    sys.stdin.read()
    os._exit(0)
threading.Thread(target=watch, daemon=True).start()
while True:
    pass
"""


@dataclass
class Tally:
    """What one method answered in the trials of one situation."""

    seen: int = 0
    ratios: list[float] = field(default_factory=list)
    took_s: list[float] = field(default_factory=list)

    def add(self, seen: bool, ratio: float, took_s: float) -> None:
        self.seen += seen
        self.ratios.append(ratio)
        self.took_s.append(took_s)

    def __str__(self) -> str:
        return f"{self.seen} of {len(self.ratios)}"

    def worst(self) -> float:
        """Return the ratio farthest from 1, as a number above 1."""
        return max(max(ratio, 1 / ratio) for ratio in self.ratios)


@contextmanager
def every_core_busy() -> Iterator[None]:
    """Keep one spinning process a core for the block, and end them with it."""
    usable = getattr(os, "sched_getaffinity", None)
    cores = len(usable(0)) if usable else os.cpu_count() or 1
    spinning: list[subprocess.Popen[bytes]] = []
    try:
        for _ in range(cores):
            command = [sys.executable, "-c", _SPIN]
            spinning.append(subprocess.Popen(command, stdin=subprocess.PIPE))
        yield
    finally:
        for process in spinning:
            process.kill()
        for process in spinning:
            process.communicate()


def additions(count: int, x: torch.Tensor) -> Function:
    """Return a function that adds to `x` `count` times: its relative cost is known."""

    def run() -> None:
        for _ in range(count):
            x.add_(1.0)

    return run


def length_for(seconds: float) -> int:
    """Return the vector length at which ten additions take about `seconds`.

    Short enough for the nearest cache: other programs' memory traffic stays out.
    """
    length = 1000
    while True:
        run = additions(10, torch.zeros(length))
        took = min(timeit.repeat(run, number=10, repeat=20)) / 10
        if took > 0.8 * seconds:
            return length
        length = int(length * min(2.0, max(1.1, seconds / took)))


def compare_trial(first: Function, other: Function) -> dict[str, tuple[str, float]]:
    result = compare({"first": first, "other": other}, seconds=SECONDS)
    return {COMPARE: (result.verdict, result.ratio)}


def timeit_trial(first: Function, other: Function) -> dict[str, tuple[str, float]]:
    """Time one after the other, with as many calls as `timeit` would choose."""
    best, mean = [], []
    for function in (first, other):
        timer = timeit.Timer(function)
        calls, took = 1, 0.0
        while took < SECONDS / 2 / REPEATS / 4:
            calls *= 2
            took = min(timer.repeat(repeat=3, number=calls))
        calls = max(1, round(calls * SECONDS / 2 / REPEATS / took))
        taken = timer.repeat(repeat=REPEATS, number=calls)
        best.append(min(taken))
        mean.append(fmean(taken))
    ratios = {BEST: best[1] / best[0], MEAN: mean[1] / mean[0]}
    return {name: (verdict(ratio), ratio) for name, ratio in ratios.items()}


def torch_trial(first: Function, other: Function) -> dict[str, tuple[str, float]]:
    medians = [
        Timer("run()", globals={"run": function})
        .blocked_autorange(min_run_time=SECONDS / 2)
        .median
        for function in (first, other)
    ]
    ratio = medians[1] / medians[0]
    return {TORCH: (verdict(ratio), ratio)}


def verdict(ratio: float) -> str:
    """Read a bare ratio as a reader would: above 3 % it is a difference."""
    if ratio > DEAD_ZONE:
        return "slower"
    return "faster" if ratio < 1 / DEAD_ZONE else "no difference seen"


def situation(
    count: int, length: int, trials: int, peer_trials: int
) -> dict[str, list[Tally]]:
    """Return each method's tallies: of identical functions, and of a true 1.3×."""
    tallies: dict[str, list[Tally]] = {}
    for case, others in enumerate((count, count * 13 // 10)):
        wanted = ("slower",) if case else ("slower", "faster")
        for method, times in (
            (compare_trial, trials),
            (timeit_trial, peer_trials),
            (torch_trial, peer_trials),
        ):
            for _ in range(times):
                # one vector for both: where a second one lies can cost a few percent
                x = torch.zeros(length)
                pair = additions(count, x), additions(others, x)
                began = time.perf_counter()
                answers = method(*pair)
                took_s = time.perf_counter() - began
                for name, (said, ratio) in answers.items():
                    tally = tallies.setdefault(name, [Tally(), Tally()])[case]
                    tally.add(said in wanted, ratio, took_s)
    return tallies


def report(trials: int = 60, peer_trials: int = 20) -> str:
    """Run all trials and return their rates as a Markdown table.

    Args:
        trials: trials of `compare` in each of the eight situations.
        peer_trials: trials of each peer in each of them.

    Returns:
        Markdown: one row a method and situation, and how it was measured.

    Example:
        >>> print(report(trials=2, peer_trials=1))
    """
    rows = [
        "| a call | cores | method | identical, called different | worst ratio "
        "| true 1.3×, found | seconds a trial |",
        "|---|---|---|--:|--:|--:|--:|",
    ]
    with set_torch_threads(1):
        length = length_for(50e-6)
        for busy in (False, True):
            for size, count in SIZES.items():
                if busy:
                    with every_core_busy():
                        tallies = situation(count, length, trials, peer_trials)
                else:
                    tallies = situation(count, length, trials, peer_trials)
                rows += [
                    f"| {size} | {'all busy' if busy else 'quiet'} | {name} "
                    f"| {same} | {same.worst():.2f} | {different} "
                    f"| {fmean(same.took_s + different.took_s):.2f} |"
                    for name, (same, different) in tallies.items()
                ]
    how = (
        f"Every method was to take {SECONDS} s for a pair, on one thread; `compare` "
        "does not count the time in which other programs had the processor, and so "
        "goes on longer (up to 3 s) where cores are busy. Both functions add "
        "to one vector, 10 times (50 µs) or 200 times (1 ms); where one is truly 1.3× "
        "slower, it adds 13 or 260 times. The peers timed one after the other; of "
        f"them, a ratio beyond {DEAD_ZONE} either way counts as a difference."
    )
    return "\n".join([*rows, "", how])


if __name__ == "__main__":
    print(report())
