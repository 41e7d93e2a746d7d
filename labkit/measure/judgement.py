"""Whether timings differ, and by which clock they count: without running anything."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median, stdev
from typing import NamedTuple

DEAD_ZONE = 1.03
"""Ratios between 1 ÷ 1.03 and 1.03 are never called a difference."""

FEWEST_PAIRS = 20
"""Below this many pairs nothing is judged: two in each group."""

GROUPS = 10

# Student's t, two-sided 99 %, for the 9 degrees of freedom of ten groups
_T_99 = 3.2498

_AGREE = 0.02  # clocks closer than this, as a share, say the same
_WAITS = 0.1  # a share of blocks: more that waited, and waiting is part of the cost


class Block(NamedTuple):
    """One timed block: seconds per call by two clocks, and whether it waited."""

    wall_s: float
    thread_s: float
    """Processor time of the thread; NaN where the platform has no fine clock."""
    waited: bool
    """The thread gave up the processor by itself: it slept, read, or took a lock."""


@dataclass(frozen=True)
class Judgement:
    """How one series of timings compares with another, as a ratio of times."""

    verdict: str
    ratio: float
    interval: tuple[float, float]


def judge(first: Sequence[float], other: Sequence[float]) -> Judgement:
    """Judge whether `other` took longer than `first`, pair by pair.

    The times at one index must have been taken close together: the log of their
    ratio then hardly depends on how busy the machine was at that moment. The ratio is
    the median over all pairs. Pauses come in bursts, so neighbouring pairs are not
    independent: the interval comes from the medians of ten contiguous groups, by
    Student's t (the method of batch means).

    Args:
        first: times of the first alternative, in seconds, each above 0.
        other: times of the other one, as many, in the order they were taken.

    Returns:
        The verdict on `other` ("faster", "slower", "no difference seen", or below
        20 pairs "too few runs"), the ratio other ÷ first, and its 99 % interval
        ((0, inf), which rules out nothing, below 20 pairs).

    Raises:
        ValueError: no timings, or not as many of one as of the other.

    Example:
        >>> judge([1.0] * 20, [2.0] * 20).verdict
        'slower'
    """
    if not first or len(first) != len(other):
        raise ValueError(
            "judge compares timings pair by pair: it needs as many of one as of the "
            f"other and at least one, and got {len(first)} and {len(other)}."
        )
    logs = [math.log(b / a) for a, b in zip(first, other, strict=True)]
    centre = median(logs)
    if len(logs) < FEWEST_PAIRS:
        return Judgement("too few runs", math.exp(centre), (0.0, math.inf))

    cuts = [len(logs) * group // GROUPS for group in range(GROUPS + 1)]
    medians = [median(logs[cuts[i] : cuts[i + 1]]) for i in range(GROUPS)]
    half_width = _T_99 * stdev(medians) / math.sqrt(GROUPS)
    # the ratio is a median and this a mean: the interval shall hold them both
    low = math.exp(min(fmean(medians) - half_width, centre))
    high = math.exp(max(fmean(medians) + half_width, centre))
    if low > DEAD_ZONE:
        verdict = "slower"
    elif high < 1 / DEAD_ZONE:
        verdict = "faster"
    else:
        verdict = "no difference seen"
    return Judgement(verdict, math.exp(centre), (low, high))


def choose_times(
    blocks: Mapping[str, Sequence[Block]],
) -> tuple[str, dict[str, list[float]]]:
    """Choose the clock that counts, and return the times by it.

    On a crowded machine the wall clock also counts the pauses in which another
    process had the processor. The thread's own processor time leaves them out, but it
    leaves out waiting as well, which is a cost. So it counts only where both clocks
    agree in the quiet blocks (the twentieth that took least) of every alternative,
    and where hardly any block waited: then it is the wall time without the pauses.

    Args:
        blocks: the blocks of each alternative, by name, in the order taken.

    Returns:
        "processor" or "wall", and the seconds per call by that clock, by name.

    Example:
        >>> choose_times({"a": [Block(2.0, 1.0, True)]})
        ('wall', {'a': [2.0]})
    """
    if all(_never_off(taken) for taken in blocks.values()):
        return "processor", {
            name: [block.thread_s for block in taken] for name, taken in blocks.items()
        }
    return "wall", {
        name: [block.wall_s for block in taken] for name, taken in blocks.items()
    }


def _never_off(blocks: Sequence[Block]) -> bool:
    if len(blocks) < FEWEST_PAIRS or _share(b.waited for b in blocks) > _WAITS:
        return False
    quiet = sorted(blocks)[: max(3, len(blocks) // 20)]
    # a NaN is not below anything: without a fine clock the wall clock counts
    return abs(median(b.thread_s / b.wall_s for b in quiet) - 1) < _AGREE and all(
        b.thread_s > 0 for b in blocks
    )


def _share(answers: Iterable[bool]) -> float:
    return fmean(float(answer) for answer in answers)
