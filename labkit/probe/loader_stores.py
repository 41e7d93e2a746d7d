"""Judges what the dataset stores: copied page by page, cached in workers, or edited."""

import sys
from collections.abc import Iterable, Iterator, Sized
from typing import Any

import numpy as np
import torch

from labkit.probe.finding import Finding, names
from labkit.probe.loader_objects import walk
from labkit.probe.loader_twin import Run
from labkit.probe.loader_worker import Record

MANY = 50_000  # objects in one container
GROWN = 8 << 20  # bytes that a worker has written to beyond what was there before


def big_containers(dataset: Any) -> dict[str, int]:
    """Return the dataset's containers of many Python objects: path and bytes.

    The bytes are an estimate from the first elements; a container of tensors or arrays
    holds few objects for its size and does not count.
    """
    found = {}
    for path, value in walk(dataset=dataset):
        if not isinstance(value, list | tuple | dict) or len(value) < MANY:
            continue
        elements = [
            element
            for _, element in zip(
                range(64),
                value.values() if isinstance(value, dict) else value,
                strict=False,
            )
        ]
        if not isinstance(elements[0], torch.Tensor | np.ndarray):
            mean = sum(map(sys.getsizeof, elements)) / len(elements)
            found[path] = int(mean * len(value))
    return found


def memory_growth(run: Run) -> dict[int, int]:
    """Return how many bytes each worker wrote to after its first batch, by worker.

    What the first batch needs once (buffers, imports) is not counted.
    """
    seen: dict[int, list[int]] = {}
    for row in run.rows:
        private = [memory.private for memory in row.record.memory]
        seen.setdefault(row.record.worker, []).extend(private)
    for worker, pid in enumerate(run.pids):
        last = run.memory.get(pid)
        if last is not None and seen.get(worker):
            seen[worker].append(last.private)
    # the first reading is from before the first batch
    return {w: max(sizes) - sizes[1] for w, sizes in seen.items() if len(sizes) > 2}


def judge_memory(
    big: dict[str, int], growth: dict[int, int], method: str
) -> Iterator[Finding]:
    """Yield a finding where reading has copied a big container into the workers."""
    worst = max(growth.values(), default=0)
    total = sum(big.values())
    if method == "fork" and total >= GROWN and worst >= max(GROWN, total // 5):
        path = max(big, key=lambda name: big[name])
        what = (
            f"reading its Python objects copies them: one worker's own memory grew by "
            f"{worst / 2**20:.0f} MiB, since each read writes a reference count; keep "
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


def judge_twice(records: Iterable[Record]) -> Iterator[Finding | str]:
    """Yield a finding, or a note, where an item changed when it was read again."""
    rows = [row for record in records for row in record.twice]
    edited = [index for index, changed, stored, _ in rows if changed and stored]
    other = [row for row in rows if row[1] and not row[2]]
    if edited:
        what = (
            f"reading an item edits what the dataset stores, so it changes each time "
            f"(samples {names(map(str, edited))}): copy before an in-place operation"
        )
        yield Finding(what, "dataset", "certain", "4.1")
    elif other and not all(scalar for *_, scalar in other):
        what = (
            f"items differ when they are read twice from one random state (samples "
            f"{names(str(row[0]) for row in other)}): stored data are edited, or they "
            f"depend on more than the generators that were found"
        )
        yield Finding(what, "dataset", "worth a look", "4.1")
    elif other:
        which = names(str(row[0]) for row in other)
        yield (
            f"numbers or texts of samples {which} differ when they are read twice from "
            f"one random state"
        )


def size_of(dataset: Any) -> int | None:
    """Return how many samples a dataset has; None where it has no length."""
    try:
        return len(dataset) if isinstance(dataset, Sized) else None
    except (TypeError, NotImplementedError):
        return None
