"""A dataset in the fetcher's hands: which items are read, and how long that takes."""

import time
from collections.abc import Iterator, Sized
from typing import Any

from labkit.probe.loader_digest import digest

SAMPLED = 1 << 16  # bytes of a tensor that the digest of a stream's item reads


class Reading:
    """A dataset in the fetcher's hands: notes which item is read, and how long."""

    def __init__(self, dataset: Any) -> None:
        self.dataset, self.read_s = dataset, 0.0
        self.current: list[Any] = []
        self.indexes: list[Any] = []
        if getattr(dataset, "__getitems__", None):
            # torch asks whether there is one
            self.__dict__["__getitems__"] = self._many

    def __getitem__(self, index: Any) -> Any:
        return self._timed([index], self.dataset.__getitem__, index)

    def _many(self, indexes: list[Any]) -> Any:
        return self._timed(list(indexes), self.dataset.__getitems__, indexes)

    def _timed(self, indexes: list[Any], read: Any, argument: Any) -> Any:
        self.current = indexes
        start = time.perf_counter()
        items = read(argument)
        self.read_s += time.perf_counter() - start
        self.indexes += indexes
        self.current = []
        return items


class Streaming:
    """A stream's iterator in the fetcher's hands: notes digests of its items."""

    def __init__(self, iterator: Iterator[Any]) -> None:
        self.iterator, self.read_s, self.count = iterator, 0.0, 0
        self.current: list[Any] = []
        self.digests: list[bytes] = []

    def __iter__(self) -> "Streaming":
        return self

    def __next__(self) -> Any:
        self.current = [self.count]
        start = time.perf_counter()
        try:
            item = next(self.iterator)
        except StopIteration:
            self.current = []
            raise
        self.read_s += time.perf_counter() - start
        self.digests.append(digest(item, SAMPLED))
        self.count += 1
        self.current = []
        return item


class Asked:
    """The worker's info in a stream's hands: notes whether it tells which worker it is."""

    def __init__(self, info: Any) -> None:
        self.info, self.asked = info, False

    def __getattr__(self, name: str) -> Any:
        if name in ("id", "num_workers"):
            self.__dict__["asked"] = True
        return getattr(self.info, name)


def size_of(dataset: Any) -> int | None:
    """Return how many samples a dataset has; None where it has no length."""
    try:
        return len(dataset) if isinstance(dataset, Sized) else None
    except (TypeError, NotImplementedError):
        return None
