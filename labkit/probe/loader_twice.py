"""Reading items twice from the same random state, in a process that is thrown away."""

import os
import time
from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np
import torch
from torch.utils.data import IterableDataset, Subset

from labkit.probe.loader_digest import digest
from labkit.probe.loader_objects import walk
from labkit.probe.loader_random import kept_generators, private_generators
from labkit.probe.loader_worker import Parcel, Record, Start

MOST = 8  # items read twice
_SCALARS = (int, float, complex, str, bytes, type(None))


def as_it_is(item: Any) -> Any:
    """Return the item: a collate function that spawned workers can import."""
    return item


class Twice(Start):
    """A `worker_init_fn` that makes the worker read every item twice."""

    def fetcher(self, kind: Any, dataset: Any, *rest: Any, create: Any) -> Any:
        """Return what reads the items of a dataset twice."""
        return TwiceFetcher(dataset)


class TwiceFetcher:
    """Reads an item twice; the record says which changed, and what was stored."""

    def __init__(self, dataset: Any) -> None:
        self.dataset = dataset
        self.private = private_generators(dataset, None)
        self.ended = False

    def fetch(self, index: Any) -> Parcel:
        """Read one item (of a stream: its first few) twice and compare."""
        if self.ended:
            raise StopIteration
        record = Record(0, os.getpid(), time.perf_counter())
        if isinstance(self.dataset, IterableDataset):
            self.ended = True
            record.twice = [*_stream_twice(self.dataset, self.private)]
        else:
            record.twice = [_item_twice(self.dataset, index, self.private)]
        return Parcel(None, record)


def _item_twice(dataset: Any, index: Any, private: Any) -> tuple[Any, bool, bool, bool]:
    with kept_generators(private):
        item = dataset[index]
        first = digest(item)
        scalar = _is_scalar(item)
        del item
    before = _stored(dataset, index)
    second = digest(dataset[index])
    edited = before != _stored(dataset, index)
    return index, first != second, edited, scalar


def _stream_twice(dataset: Any, private: Any) -> Iterator[tuple[Any, bool, bool, bool]]:
    with kept_generators(private):
        iterator = iter(dataset)
        if iterator is dataset:
            return  # it can be read once only
        items = [(digest(x), _is_scalar(x)) for x in islice(iterator, MOST)]
    before = [_stored(dataset, place) for place in range(len(items))]
    again = [digest(item) for item in islice(iter(dataset), MOST)]
    for place, (first, scalar) in enumerate(items):
        changed = place >= len(again) or again[place] != first
        edited = before[place] != _stored(dataset, place)
        yield place, changed, edited, scalar


def _stored(dataset: Any, index: Any) -> list[tuple[str, Any]]:
    """Return what the dataset holds for an item, in a form that can be compared."""
    indexes = [index]
    inner = dataset
    while isinstance(inner, Subset):
        indexes.append(inner.indices[indexes[-1]])
        inner = inner.dataset
    found: list[tuple[str, Any]] = []
    for path, value in walk(dataset=dataset):
        if isinstance(value, torch.Tensor) and not value.is_inference():
            found.append((path, value._version))  # counts edits, through views too
        if isinstance(value, torch.Tensor | np.ndarray | list | dict):
            for place in indexes:
                found.append((path, _element(value, place)))
    return found


def _element(value: Any, place: Any) -> bytes | None:
    try:
        return digest(value[place])
    except (KeyError, IndexError, TypeError, ValueError):
        return None  # it has no such element


def _is_scalar(item: Any) -> bool:
    if isinstance(item, dict):
        return all(_is_scalar(value) for value in item.values())
    if isinstance(item, list | tuple):
        return all(_is_scalar(value) for value in item)
    return isinstance(item, _SCALARS)
