"""Judges what the dataset stores: copied page by page, cached in workers, or edited."""

import sys
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from statistics import mean
from typing import Any, NamedTuple

import numpy as np
import torch

from labkit.probe.finding import Finding, names
from labkit.probe.loader_memory import Memory
from labkit.probe.loader_objects import walk
from labkit.probe.loader_pages import addresses
from labkit.probe.loader_record import Record
from labkit.probe.loader_twin import Run

FEW, MANY = 64, 50_000  # elements of one container, and objects with those inside
GROWN = 8 << 20  # bytes that a worker copies in an epoch


class Big(NamedTuple):
    """A container of many Python objects: bytes, and some of their addresses."""

    size: int
    places: list[int]


def big_containers(dataset: Any) -> dict[str, Big]:
    """Return the dataset's containers of many Python objects, by path.

    The bytes are an estimate from the first elements, and from those of containers
    inside; a container of tensors or arrays holds few objects for its size and does
    not count.
    """
    found = {}
    for path, value in walk(dataset=dataset):
        if not isinstance(value, list | tuple | dict) or len(value) < FEW:
            continue
        first = _first(value)
        if not isinstance(first[0], torch.Tensor | np.ndarray):
            objects, size = _mean(map(_objects, first)), _mean(map(_bytes, first))
            if objects * len(value) >= MANY:
                found[path] = Big(int(size * len(value)), addresses(value))
    return found


def _first(container: Any) -> list[Any]:
    elements = container.values() if isinstance(container, dict) else container
    return list(islice(elements, 64))


def _inside(element: Any) -> list[Any]:
    return _first(element) if isinstance(element, list | tuple | dict) else []


def _objects(element: Any) -> float:
    return 1 + (len(element) if _inside(element) else 0)


def _bytes(element: Any) -> float:
    inside = _inside(element)
    held = _mean(map(sys.getsizeof, inside)) * len(element) if inside else 0
    return sys.getsizeof(element) + held


def _mean(numbers: Iterable[float]) -> float:
    return mean(list(numbers))


def memory_growth(run: Run, big: Mapping[str, Big]) -> dict[int, int]:
    """Return how many bytes each worker has copied since its first batch, by worker.

    Copied is what it has alone and shared before: memory that it asked for anew does
    not count, and neither does what the first batch needs once (buffers, imports). It
    is at most what the containers' own copied pages explain, where these are known:
    memory that was freed before the fork is copied as well when it is used again.
    """
    seen: dict[int, list[Memory]] = {}
    for row in run.rows:
        seen.setdefault(row.record.worker, []).extend(row.record.memory)
    for worker, pid in enumerate(run.pids):
        last = run.memory.get(pid)
        if last is not None and seen.get(worker):
            seen[worker].append(last)
    growth = {}
    for worker, sizes in seen.items():
        if len(sizes) > 2:
            begin = sizes[1]  # the first reading is from before the first batch
            growth[worker] = max(
                min(size.private - begin.private, begin.shared - size.shared)
                for size in sizes[1:]
            )
            shares = run.copied.get(run.pids[worker], {})
            if shares:
                explained = sum(big[path].size * shares[path] for path in shares)
                growth[worker] = min(growth[worker], int(explained))
    return growth


def judge_memory(
    big: Mapping[str, Big], growth: dict[int, int], method: str, part: float
) -> Iterator[Finding]:
    """Yield a finding where each worker gets a big container's objects for itself.

    Args:
        big: the containers of many objects.
        growth: the bytes that each worker has copied.
        method: how the workers were started.
        part: how much of the epoch was watched, from 0 to 1.
    """
    total = sum(each.size for each in big.values())
    if total < GROWN:
        return
    path = max(big, key=lambda name: big[name].size)
    if method != "fork":
        what = (
            f"{method} sends all its Python objects to each worker, which then has "
            f"about {total / 2**20:.0f} MiB of its own: keep the data in a tensor, "
            f"which workers share, or in an array, which is smaller"
        )
        yield Finding(what, path, "worth a look", "4.2")
        return
    worst = max(growth.values(), default=0)
    enough = max(GROWN, total // 5)
    if worst < GROWN // 8 or worst / max(part, 1e-9) < enough:
        return
    when = "" if worst >= enough else f" in {part:.0%} of the epoch"
    what = (
        f"reading its Python objects copies them: one worker copied "
        f"{worst / 2**20:.0f} MiB{when}, since each read writes a reference count; keep "
        f"the data in an array or a tensor"
    )
    yield Finding(what, path, "likely", "4.2")


def judge_caches(
    records: Iterable[Record], stream: bool, persistent: bool
) -> Iterator[Finding | str]:
    """Yield a finding, or a note, where each worker fills a cache of its own."""
    filled: dict[str, dict[int, int]] = {}
    read: dict[int, int] = {}
    for record in records:
        items = record.digests if stream else record.indexes
        read[record.worker] = read.get(record.worker, 0) + len(items)
        for path, gained in record.filled.items():
            # a few open files are no cache: it grows with the items
            if gained >= 4 and 2 * gained >= read[record.worker]:
                filled.setdefault(path, {})[record.worker] = gained
    for path, workers in filled.items():
        if persistent:
            yield f"each worker fills `{path}` for itself: the entries multiply"
            continue
        what = (
            f"each worker fills its own copy ({max(workers.values())} entries in one), "
            f"which ends with the worker: fill it before the loader is made"
        )
        yield Finding(what, path, "likely", "4.1")


def judge_twice(
    records: Iterable[Record], others: Iterable[Record]
) -> Iterator[Finding | str]:
    """Yield a finding, or a note, where an item changed when it was read again.

    Args:
        records: those of the items that were read twice.
        others: the same of another process that began alike.
    """
    rows = [row for record in records for row in record.twice if row.changed]
    edited = [str(row.index) for row in rows if row.edited]
    if edited:
        what = (
            f"reading an item edits what the dataset stores, so it changes each time "
            f"(samples {names(edited)}): copy before an in-place operation"
        )
        yield Finding(what, "dataset", "certain", "4.1")
        return
    if not rows:
        return
    # what comes from outside, like the time, differs between processes as well
    same = {repr(row.index): row.first for record in others for row in record.twice}
    inside = [row for row in rows if same.get(repr(row.index)) == row.first]
    inside = [row for row in inside if not row.scalar]
    which = names(str(row.index) for row in inside or rows)
    if inside:
        what = (
            f"items differ when they are read twice from one random state (samples "
            f"{which}): stored data are edited, or random numbers come from a state "
            f"that each worker copies"
        )
        yield Finding(what, "dataset", "worth a look", "4.1")
        return
    kind = "numbers or texts" if all(row.scalar for row in rows) else "items"
    yield f"{kind} of samples {which} differ when read twice from one random state"
