"""What the course of a learning rate shows by itself, whichever scheduler made it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

FALLEN = 0.9
"""A rate counts as falling once it's below this part of its peak."""

RISEN = 0.01
"""A rate counts as rising again once it's this part of the peak above its lowest."""

AS_GOOD_AS_ZERO = 1e-8
"""Of the peak: no step of this size moves a float32 weight that the peak could move."""


@dataclass(frozen=True)
class Rise:
    """A rise of the rate after it had fallen.

    Attributes:
        start, end: the last step before it rises, and the step at which it's highest.
        low, high: the rates there.
        before: the peak from which the rate had fallen.
        at_once: whether it rises from one value to the next, and not over several.
    """

    start: int
    end: int
    low: float
    high: float
    before: float
    at_once: bool


def rises(rates: Sequence[float]) -> Iterator[Rise]:
    """Yield the rises of a rate that had fallen, in order.

    Args:
        rates: learning rates by optimizer step.

    Example:
        >>> [rise.end for rise in rises([0.1, 0.01, 0.01, 0.1])]
        [3]
    """
    values, starts = _changes(rates)
    peak, low, lowest, falling = values[0], values[0], 0, False
    at = 1
    while at < len(values):
        value = values[at]
        if not falling:
            peak = max(peak, value)
            falling = value < FALLEN * peak
            low, lowest = value, at
        elif value <= low:
            low, lowest = value, at
        elif value - low > RISEN * peak:
            while at + 1 < len(values) and values[at + 1] > values[at]:
                at += 1
            yield Rise(
                start=int(starts[lowest + 1]) - 1,
                end=int(starts[at]),
                low=low,
                high=values[at],
                before=peak,
                at_once=at == lowest + 1,
            )
            peak, low, falling = values[at], values[at], False
        at += 1


def zero_tail(rates: Sequence[float]) -> int:
    """Return how many steps at the end have a rate of zero, or as good as zero.

    Args:
        rates: learning rates by optimizer step.

    Example:
        >>> zero_tail([0.1, 0.0, 0.1, 0.0, 0.0])
        2
    """
    sizes = np.abs(np.asarray(rates))
    alive = np.flatnonzero(sizes > AS_GOOD_AS_ZERO * sizes.max(initial=0.0))
    return len(sizes) - (int(alive[-1]) + 1 if len(alive) else 0)


def never_arrives(rates: Sequence[float], base: float) -> bool:
    """Return whether a rate only rises, to the end, and stays below half of its base.

    Args:
        rates: learning rates by optimizer step.
        base: the rate that was given to the optimizer.

    Example:
        >>> never_arrives([0.0, 0.01, 0.02], base=0.1)
        True
    """
    values, _ = _changes(rates)
    rising = len(values) > 1 and bool(np.all(np.diff(values) > 0))
    return rising and values[-1] < 0.5 * base


def warms_up(rates: Sequence[float], rise: Rise) -> bool:
    """Return whether a rate rises for the first time at a rise of another one.

    Args:
        rates: learning rates by optimizer step.
        rise: where the other one rises.

    Example:
        >>> warms_up([0.01, 0.1, 0.1], Rise(0, 1, 0.01, 0.1, 0.2, True))
        True
    """
    if len(rates) <= rise.end:
        return False
    before = rates[: rise.start + 1]
    return rates[rise.end] > rates[rise.start] >= max(before) * FALLEN


def varies(rates: Sequence[float]) -> bool:
    """Return whether a rate changes by more than rounding does.

    Example:
        >>> varies([0.1, 0.1])
        False
    """
    return max(rates) - min(rates) > 1e-9 * max(abs(max(rates)), abs(min(rates)))


def _changes(rates: Sequence[float]) -> tuple[list[float], np.ndarray]:
    """Return the values without their repeats, and the step at which each begins."""
    values = np.asarray(rates, dtype=float)
    starts = np.concatenate([[0], np.flatnonzero(np.diff(values)) + 1])
    return values[starts].tolist(), starts
