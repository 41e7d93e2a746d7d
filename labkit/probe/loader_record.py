"""What a worker notes about a batch that it makes."""

import traceback
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from labkit.probe.loader_memory import Memory


@dataclass
class Problem:
    """An error while a batch was made: `what` is "read", "collate" or "send"."""

    what: str
    index: Any
    error: str
    trace: str


class ReadTwice(NamedTuple):
    """An item read twice: the first digest, and whether what was read, or stored, changed.

    `scalar` is whether it is plain numbers or text.
    """

    index: Any
    first: bytes
    changed: bool
    edited: bool
    scalar: bool


@dataclass
class Record:
    """How one batch was made: times in seconds of the system's monotonic clock.

    `marks` are digests of the generators' states afterwards, `start` those before the
    worker's first item; `filled` how many entries each container has gained; `shares`
    whether the stream asked which worker it is in; `reseeded` the generators that come
    out of an item the same whatever they were before.
    """

    worker: int
    pid: int
    began: float
    ended: float = 0.0
    read_s: float = 0.0
    indexes: list[Any] = field(default_factory=list)
    digests: list[bytes] = field(default_factory=list)
    start: dict[str, bytes] = field(default_factory=dict)
    marks: dict[str, bytes] = field(default_factory=dict)
    memory: list[Memory] = field(default_factory=list)
    filled: dict[str, int] = field(default_factory=dict)
    problem: Problem | None = None
    shares: bool = False
    twice: list[ReadTwice] = field(default_factory=list)
    reseeded: set[str] = field(default_factory=set)


def problem(what: str, which: Any, error: Exception) -> Problem:
    """Return an error as text, which can always be sent; `which`: the samples."""
    if isinstance(which, list) and len(which) == 1:
        which = which[0]
    said = str(error).strip().splitlines()
    text = f"{type(error).__name__}: {said[0]}" if said else type(error).__name__
    trace = "".join(traceback.format_exception(error))
    return Problem(what, which, text, trace)
