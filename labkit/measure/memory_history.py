"""What happened to memory in a block, event by event."""

from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

KINDS = (
    "parameter",
    "gradient",
    "optimizer state",
    "activation",
    "temporary",
    "input",
    "other",
)
_MOST_MOMENTS = 2_000


class Moment(NamedTuple):
    """The memory after one event: a storage came, or a storage went.

    Attributes:
        event: how many storages had come or gone in the block by then.
        bytes: bytes counted at this moment.
        by_kind: the same by kind; kinds without bytes are left out.
    """

    event: int
    bytes: int
    by_kind: dict[str, int]


@dataclass(frozen=True, eq=False)
class History:
    """All comings and goings of storages, in order.

    Attributes:
        changes: bytes that each event added, negative where a storage went.
        kinds: the kind of each storage, as an index into KINDS.
        given: how many events came before the block: what was given to it.
        peak_place: index of the event that reached the peak; -1 if nothing counted.
    """

    changes: np.ndarray
    kinds: np.ndarray
    given: int
    peak_place: int

    def at_peak(self) -> dict[str, int]:
        """Return the bytes of each kind at the peak; all kinds are listed."""
        until = self.peak_place + 1
        changes, kinds = self.changes[:until], self.kinds[:until]
        return {
            kind: int(changes[kinds == index].sum()) for index, kind in enumerate(KINDS)
        }

    def timeline(self) -> tuple[Moment, ...]:
        """Return the moments, from the block's beginning to its end.

        Of long histories one moment in each stretch is kept, the highest: no peak is
        lost.
        """
        totals = np.concatenate([[0], self.changes.cumsum()])[self.given :]
        bounds = np.linspace(0, len(totals), _MOST_MOMENTS + 1).astype(int)
        if len(totals) <= _MOST_MOMENTS:
            kept = list(range(len(totals)))
        else:
            kept = [
                int(start + totals[start:end].argmax())
                for start, end in pairwise(bounds)
            ]
            # where the block begins and ends is always told
            kept = sorted({0, *kept, len(totals) - 1})
        by_kind = {
            kind: np.concatenate(
                [[0], np.where(self.kinds == index, self.changes, 0).cumsum()]
            )[self.given :][kept]
            for index, kind in enumerate(KINDS)
            if (self.kinds == index).any()
        }
        return tuple(
            Moment(
                event,
                int(totals[event]),
                {kind: int(n[i]) for kind, n in by_kind.items() if n[i]},
            )
            for i, event in enumerate(kept)
        )
