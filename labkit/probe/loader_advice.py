"""What to change about a loader's speed, each with the measured reason."""

import os
from collections.abc import Iterator
from dataclasses import dataclass

from labkit.probe.finding import plain

RULE = 0.2
"""The article's limit: a share of time spent waiting above it means, tune the loader."""

_ENOUGH_S = 0.1  # of watching, for a share to mean something


@dataclass(frozen=True)
class Suggestion:
    """One change to a loader, the measured reason, and the page that explains it.

    Example:
        >>> print(Suggestion("num_workers=0", "an item takes 2 µs", "4.2"))
        num_workers=0, because an item takes 2 µs (see page 4.2)
    """

    change: str
    reason: str
    page: str

    def __str__(self) -> str:
        return f"{self.change}, because {self.reason} (see page {self.page})"

    def _repr_markdown_(self) -> str:
        return (
            f"{plain(self.change)}, because {plain(self.reason)} (see page {self.page})"
        )


@dataclass(frozen=True)
class Pace:
    """How fast a loader and its trainer were, in seconds.

    Attributes:
        workers: how many processes read.
        total_s, startup_s, waiting_s, computing_s: of the epoch, as in the report.
        item_s: the median time to read one item; None where none was read singly.
        busy: the share of the time since its first batch that each worker worked.
        persistent: whether the workers live on.
        stepped: whether there was a step.
    """

    workers: int
    total_s: float
    startup_s: float
    waiting_s: float
    computing_s: float
    item_s: float | None
    busy: tuple[float, ...]
    persistent: bool
    stepped: bool


def cores() -> int:
    """Return how many processor cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def suggest(pace: Pace) -> Iterator[Suggestion]:
    """Yield what the measured times say about the loader's arguments."""
    if pace.total_s < _ENOUGH_S or pace.item_s is None:
        return
    item = f"reading an item takes {duration(pace.item_s)}"
    if pace.workers and pace.item_s < 1e-4 and pace.startup_s > 0.5 * pace.waiting_s:
        yield Suggestion(
            "try `num_workers=0`",
            f"{item} and starting the workers took {duration(pace.startup_s)}",
            "4.2",
        )
        return
    whole = pace.total_s
    if pace.workers and not pace.persistent and pace.startup_s > 0.25 * whole:
        yield Suggestion(
            "try `persistent_workers=True`",
            f"starting the workers took {pace.startup_s / whole:.0%} of the time "
            "watched, and each epoch starts them again",
            "4.2",
        )
    spent = pace.waiting_s + pace.computing_s
    if not pace.stepped or not spent or pace.waiting_s / spent <= RULE:
        return
    waits = f"the step waits for data {pace.waiting_s / spent:.0%} of the time"
    if pace.workers == 0 and pace.item_s >= 1e-3:
        yield Suggestion(
            f"try `num_workers={cores()}` and measure others",
            f"{waits}, {item}, and nothing is read while the step computes",
            "4.2",
        )
    elif pace.workers and min(pace.busy, default=0) > 0.7:
        more = pace.workers < cores()
        yield Suggestion(
            f"try `num_workers={cores()}`" if more else "make the item cheaper",
            f"{waits} and the workers are busy all the time, on {cores()} cores",
            "4.2" if more else "4.1",
        )
    elif pace.item_s < 1e-4:
        yield Suggestion(
            "index whole batches instead of items",
            f"{waits}, though {item}: collecting them takes longer",
            "4.1",
        )


def duration(seconds: float) -> str:
    """Return a time as text in a unit that fits.

    >>> duration(0.0123)
    '12 ms'
    """
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e6:.0f} µs"
