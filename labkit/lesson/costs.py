"""Symptoms of cost: what the broken code needs, in times of what the fixed code needs."""

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from labkit.lesson.evidence import LabError, short
from labkit.lesson.guard import guarded
from labkit.lesson.symptom import RUN_LIMIT, Run, Seen, Symptom


@dataclass(frozen=True)
class Slow(Symptom):
    factor: float
    count: str | None = None
    kind = "slow"

    def observe(self, run: Run) -> Seen:
        if self.count:
            return counted(run(), self.count)
        start = time.perf_counter()
        run()
        if torch.accelerator.is_available():
            torch.accelerator.synchronize()
        seconds = time.perf_counter() - start
        return Seen(None, f"it took {duration(seconds)}", {"seconds": seconds})

    def judge(self, broken: Run, before: Seen, fixed: Run) -> tuple[Seen, Seen]:
        if self.count:
            return relative(before, self.look(fixed), self.count, self.factor)
        after = self.look(fixed)
        if before.failed or after.failed:
            return before, after
        from labkit.measure.timing import compare

        for _ in range(3):  # a busy machine may need a second look
            with guarded(seconds=RUN_LIMIT):
                seen = compare({"fixed": fixed, "broken": broken})
            if seen.ratio >= self.factor and seen.verdict == "slower":
                break
        shown = seen.ratio >= self.factor
        most = f"at least {self.factor:g} times the time of the fixed code"
        less = f"less than {self.factor:g} times the time of the fixed code"
        return (
            Seen(shown, most if shown else less, {"ratio": round(seen.ratio, 2)}),
            Seen(
                not shown, "its time counts as 1", {"seconds": seen.median_s["fixed"]}
            ),
        )


@dataclass(frozen=True)
class Heavy(Symptom):
    factor: float
    count: str | None = None
    kind = "heavy"

    def observe(self, run: Run) -> Seen:
        if self.count:
            return counted(run(), self.count)
        from labkit.measure.memory import track_memory

        with track_memory() as memory:
            run()
        return Seen(
            None,
            f"peak {size(memory.peak_bytes)} of tensors",
            {"peak_bytes": memory.peak_bytes},
        )

    def judge(self, broken: Run, before: Seen, fixed: Run) -> tuple[Seen, Seen]:
        name = self.count or "peak_bytes"
        return relative(before, self.look(fixed), name, self.factor)


def slower(factor: float, count: str | None = None) -> Symptom:
    """The broken code takes at least `factor` times as long as the fixed.

    With `count` (like "loads") both return that number, and the clock is not asked.
    """
    return Slow(at_least_one("slower", factor), count)


def heavier(factor: float, count: str | None = None) -> Symptom:
    """The broken code's tensors need at least `factor` times the memory at their peak.

    With `count` (like "bytes") both return that number, and nothing is tracked.
    """
    return Heavy(at_least_one("heavier", factor), count)


def at_least_one(who: str, factor: float) -> float:
    if not isinstance(factor, int | float) or isinstance(factor, bool) or factor <= 1:
        raise LabError(f"{who}: factor is a number above 1; {factor!r} came")
    return float(factor)


def counted(value: Any, count: str) -> Seen:
    """A run that returned a count."""
    number = value.item() if isinstance(value, torch.Tensor | np.generic) else value
    if isinstance(number, bool) or not isinstance(number, int | float):
        said = f"{short(value)}, where the number of {count} was expected"
        return Seen(False, said, failed=True)
    one = number == 1 and len(count) > 2  # not of ms
    unit = count.removesuffix("s") if one else count
    text = size(int(number)) if count == "bytes" else f"{number:,} {unit}"
    return Seen(None, text, {count: number})


def relative(before: Seen, after: Seen, name: str, factor: float) -> tuple[Seen, Seen]:
    """Judge two counts of one thing: shown where before is `factor` times after."""
    if before.failed or after.failed:
        return before, after
    shown = before.measured[name] >= factor * after.measured[name]
    return (
        Seen(shown, before.observed, before.measured),
        Seen(not shown, after.observed, after.measured),
    )


def size(bytes: int) -> str:
    """Bytes for people: decimal units, three digits at most."""
    amount, unit = float(bytes), "B"
    for unit in ("B", "kB", "MB", "GB"):
        if amount < 999.5 or unit == "GB":
            break
        amount /= 1000
    return f"{amount:.3g} {unit}"


def duration(seconds: float) -> str:
    """Seconds for people, one digit: times vary more than that."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= scale or unit == "µs":
            return f"about {float(f'{seconds / scale:.1g}'):g} {unit}"
    raise AssertionError(seconds)
