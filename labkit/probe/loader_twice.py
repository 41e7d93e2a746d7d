"""Reading items twice from the same random state, in a process that is thrown away."""

import contextlib
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
from labkit.probe.loader_random import (
    kept_generators,
    marks,
    private_generators,
    set_alike,
)
from labkit.probe.loader_record import ReadTwice, Record
from labkit.probe.loader_worker import Parcel, Start
from labkit.probe.rng import kept_rng

MOST = 8  # items read twice
_SCALARS = (int, float, complex, str, bytes, type(None))


def as_it_is(item: Any) -> Any:
    """Return the item: a collate function that spawned workers can import."""
    return item


class Twice(Start):
    """A `worker_init_fn` that makes the worker read every item twice.

    Args:
        init: the learner's, or None.
        collate: the loader's `collate_fn`, where it gets lists of items; else None.
    """

    def __init__(self, init: Any, collate: Any = None) -> None:
        super().__init__(init)
        self.collate = collate

    def fetcher(self, kind: Any, dataset: Any, *rest: Any, create: Any) -> Any:
        """Return what reads the items of a dataset twice."""
        return TwiceFetcher(dataset, self.collate)


class TwiceFetcher:
    """Reads an item twice; the record says which changed, and what was stored."""

    def __init__(self, dataset: Any, collate: Any) -> None:
        self.dataset, self.collate = dataset, collate
        self.warm = self.ended = False
        # each process that does this begins alike, so that two can be compared
        set_alike(private_generators(dataset, collate))

    def fetch(self, index: Any) -> Parcel:
        """Read one item (of a stream: its first few) twice and compare."""
        if self.ended:
            raise StopIteration
        record = Record(0, os.getpid(), time.perf_counter())
        stream = isinstance(self.dataset, IterableDataset)
        if not self.warm:
            self.warm = True
            # what the first item sets up, a generator perhaps, is there from here on
            with kept_rng():
                if not stream:
                    self.dataset[index]
                elif iter(self.dataset) is not self.dataset:
                    next(iter(self.dataset), None)
        if stream:
            self.ended = True
            record.twice = [*_stream_twice(self.dataset)]
        else:
            record.twice = [self._item(index, record)]
        return Parcel(None, record)

    def _item(self, index: Any, record: Record) -> ReadTwice:
        private = private_generators(self.dataset, self.collate)
        with kept_generators(private):
            start = marks(private)
            item = self.dataset[index]
            first = digest(item)
            before = _stored(self.dataset, index)
            if self.collate is not None:
                # it may edit the item, but need not take a list of one
                with contextlib.suppress(Exception):
                    self.collate([item])
            collated = digest(item)
        with kept_rng():
            second = digest(self.dataset[index])
        # an item that changes when another one is read is what the dataset stores
        edited = before != _stored(self.dataset, index) or digest(item) != collated
        if private:
            once = marks(private)
            with kept_rng():
                self.dataset[index]
            # one that is seeded for each item comes out where it did before
            again = marks(private)
            record.reseeded = {
                path for path in private if start[path] != once[path] == again[path]
            }
        return ReadTwice(index, first, first != second, edited, _is_scalar(item))


def _stream_twice(dataset: Any) -> Iterator[ReadTwice]:
    with kept_generators(private_generators(dataset, None)):
        iterator = iter(dataset)
        if iterator is dataset:
            return  # it can be read once only
        items = [(digest(x), _is_scalar(x)) for x in islice(iterator, MOST)]
    before = [_stored(dataset, place) for place in range(len(items))]
    again = [digest(item) for item in islice(iter(dataset), MOST)]
    for place, (first, scalar) in enumerate(items):
        changed = place >= len(again) or again[place] != first
        edited = before[place] != _stored(dataset, place)
        yield ReadTwice(place, first, changed, edited, scalar)


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
