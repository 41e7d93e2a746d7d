"""Epochs of the real name lengths in batches, and what padding makes of them."""

import csv
import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from labkit.lesson.data import data_path

SHUFFLED, BUCKETS, SORTED = "shuffled", "buckets of similar length", "sorted by length"
ORDERS = (SHUFFLED, BUCKETS, SORTED)
SIZES = (32, 4, 8, 16, 64, 128, 256)  # of a batch; the first is where it starts
WIDTHS = range(1, 21)  # of a bucket, in letters

Batch = tuple[int, ...]


@dataclass(frozen=True)
class Epoch:
    """The lengths of the names, batch by batch.

    `size` is that of a full batch, `buckets` how many buckets have names in them (0 where
    there are none).
    """

    size: int
    batches: tuple[Batch, ...]
    buckets: int = 0

    @property
    def names(self) -> int:
        return sum(map(len, self.batches))

    @property
    def letters(self) -> int:
        return sum(map(sum, self.batches))

    @property
    def places(self) -> int:
        """Letters and pads: each batch is as wide as its longest name."""
        return sum(len(batch) * max(batch) for batch in self.batches)

    @property
    def wasted(self) -> float:
        """The share of the places that are pads."""
        return 1 - self.letters / self.places

    @property
    def full(self) -> int:
        """How many batches have `size` names."""
        return sum(len(batch) == self.size for batch in self.batches)


@lru_cache(maxsize=1)
def lengths() -> tuple[int, ...]:
    """The length of each name in letters, shuffled once."""
    with data_path("names.csv").open(encoding="utf-8", newline="") as file:
        found = [len(row["name"]) for row in csv.DictReader(file)]
    random.Random(0).shuffle(found)
    return tuple(found)


@lru_cache(maxsize=512)
def epoch(size: int, order: str, width: int = 0) -> Epoch:
    """One epoch in batches of `size` names.

    `order` is one of ORDERS.  With BUCKETS a bucket holds `width` lengths that follow on
    each other: 1 to `width`, and so on; a batch comes from one bucket, and the batches of
    all buckets are shuffled.
    """
    if order == SHUFFLED:
        return Epoch(size, cut(lengths(), size))
    if order == SORTED:
        return Epoch(size, cut(sorted(lengths()), size))
    buckets: dict[int, list[int]] = {}
    for length in lengths():
        buckets.setdefault((length - 1) // width, []).append(length)
    batches = [batch for names in buckets.values() for batch in cut(names, size)]
    random.Random(0).shuffle(batches)
    return Epoch(size, tuple(batches), len(buckets))


def cut(names: Sequence[int], size: int) -> tuple[Batch, ...]:
    return tuple(
        tuple(names[first : first + size]) for first in range(0, len(names), size)
    )


def spread(shown: Epoch, room: int, gap: int) -> tuple[Batch, ...]:
    """As many batches as fit side by side into `room` places, from all over the epoch.

    Between two of them `gap` places stay free.  At least one is given.
    """
    total = len(shown.batches)
    for count in range(min(total, room // (1 + gap) + 1), 1, -1):
        chosen = tuple(
            shown.batches[round(n * (total - 1) / (count - 1))] for n in range(count)
        )
        if sum(max(batch) + gap for batch in chosen) - gap <= room:
            return chosen
    return shown.batches[:1]
