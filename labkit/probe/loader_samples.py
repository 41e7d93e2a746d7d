"""Judges which samples came: twice, never, or from every worker alike."""

import operator
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from torch.utils.data import (
    BatchSampler,
    DataLoader,
    DistributedSampler,
    RandomSampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)

from labkit.probe.finding import Finding
from labkit.probe.loader_reading import size_of
from labkit.probe.loader_record import Record
from labkit.probe.loader_twin import Run

# what they leave out or repeat, they were asked to
_ASKED = (
    DistributedSampler,
    RandomSampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)


def count_samples(
    loader: DataLoader[Any], records: Iterable[Record], finished: bool, stream: bool
) -> tuple[int, int | None]:
    """Return how many samples came more than once, and how many never.

    The second is None for a stream and where the epoch was not watched to its end.
    """
    if stream:
        return sum(n > 1 for n in _workers_by_item(records).values()), None
    size = size_of(loader.dataset)
    read = (index for record in records for index in record.indexes)
    counts = Counter(_key(i) for index in read for i in _singles(index, size))
    twice = sum(number > 1 for number in counts.values())
    return twice, size - len(counts) if finished and size is not None else None


def part_watched(loader: DataLoader[Any], run: Run) -> float:
    """Return how much of an epoch a run was, from 0 to 1; 1 where that is not known."""
    try:
        return 1.0 if run.finished else min(len(run.rows) / len(loader), 1.0)
    except (TypeError, NotImplementedError, ZeroDivisionError):
        return 1.0  # it has no length


def judge_samples(
    loader: DataLoader[Any], twice: int, never: int | None
) -> Iterator[Finding]:
    """Yield a finding where a sampler of the learner's own repeats samples."""
    own = type(loader.batch_sampler) not in (BatchSampler, type(None))
    own = own or not isinstance(loader.sampler, _ASKED)
    if own and twice and never:
        what = f"in one epoch {twice} samples come more than once and {never} never"
        where = "batch_sampler" if loader.batch_sampler is not None else "sampler"
        yield Finding(what, where, "worth a look", "4.1")


def judge_stream(
    first: list[Record], alike: Iterable[Record], finished: bool
) -> Iterator[Finding | str]:
    """Yield a finding, or a note, where workers read the same items of a stream.

    Args:
        first: the records of the watched epoch.
        alike: those of workers that all began from one random state.
        finished: whether the stream came to its end.
    """
    items = {record.worker: [] for record in first}  # type: dict[int, list[bytes]]
    for record in first:
        items[record.worker] += record.digests
    several = [found for found in items.values() if found]
    if len(several) < 2:
        return
    advice = "share it out in `__iter__` by `get_worker_info()`"
    shared = sum(n > 1 for n in _workers_by_item(first).values())
    distinct = len({item for found in several for item in found})
    varied = min(len(set(found)) / len(found) for found in several) > 0.9
    begun = min(several, key=len)
    same_order = len(set(begun)) > 1 and len(begun) > 7
    same_order = same_order and all(f[: len(begun)] == begun for f in several)
    if (varied and distinct > 1 and shared > 0.5 * distinct) or same_order:
        what = (
            f"its {len(several)} workers read the same items: {shared} of {distinct} "
            f"came from more than one worker; {advice}"
        )
        yield Finding(what, "dataset", "certain", "4.2")
        return
    alike = list(alike)
    starts = [tuple(record.digests) for record in alike if record.digests]
    # one that asks which worker it is in may well share out what it makes at random
    shares = any(record.shares for record in alike)
    same = len(starts) > 1 and len(set(starts)) == 1 and len(set(starts[0])) > 1
    if same and not shares:
        what = (
            "from one random state every worker reads the same items, so they do not "
            "share the stream out"
        )
        if finished:
            yield Finding(f"{what}; {advice}", "dataset", "likely", "4.2")
        else:
            yield f"{what}; that is meant where the items are made up at random"


def _workers_by_item(records: Iterable[Record]) -> dict[bytes, int]:
    found: dict[bytes, set[int]] = {}
    for record in records:
        for item in record.digests:
            found.setdefault(item, set()).add(record.worker)
    return {item: len(workers) for item, workers in found.items()}


def _singles(index: Any, size: int | None) -> Iterable[Any]:
    """Return the samples of an index, which may take several at once."""
    if isinstance(index, slice) and size is not None:
        return range(size)[index]
    several = isinstance(index, list) or getattr(index, "ndim", 0) == 1
    return index if several else [index]


def _key(index: Any) -> Any:
    try:
        return operator.index(index)
    except TypeError:
        return repr(index)
