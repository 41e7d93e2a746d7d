"""What runs inside a watched loader's workers: each batch carries a record along."""

import os
import time
from collections import deque
from itertools import islice
from typing import Any

from torch.utils.data import IterableDataset, get_worker_info
from torch.utils.data import dataloader as torch_loader
from torch.utils.data._utils import worker as torch_worker

from labkit.probe.loader_ending import begin_worker
from labkit.probe.loader_memory import MemoryMeter
from labkit.probe.loader_objects import walk
from labkit.probe.loader_pickle import why_not_sent
from labkit.probe.loader_random import marks, private_generators, set_alike
from labkit.probe.loader_reading import Asked, Reading, Streaming
from labkit.probe.loader_record import Problem, Record, problem

FIRST = 16  # items of a stream that are compared between workers


class Parcel:
    """A batch and its record, on the way from a worker to the trainer."""

    def __init__(self, batch: Any, record: Record) -> None:
        self.batch, self.record = batch, record

    def pin_memory(self, device: Any = None) -> "Parcel":
        """Pin the batch as the loader would have done without the record."""
        from torch.utils.data._utils.pin_memory import pin_memory

        return Parcel(pin_memory(self.batch, device), self.record)


class Start:
    """A `worker_init_fn`: the learner's own first, then the watching of this worker.

    Args:
        init: the learner's, or None.
        alike: whether all generators get one state, and a stream's first items are
            compared instead of read in batches.
        big: addresses of the objects for which memory must be watched, by path.
    """

    def __init__(
        self, init: Any, alike: bool = False, big: dict[str, list[int]] | None = None
    ) -> None:
        self.init, self.alike, self.big = init, alike, big or {}
        self.info: Asked | None = None

    def __call__(self, worker: int) -> None:
        begin_worker()
        if self.init is not None:
            self.init(worker)
        if self.alike:
            self.info = Asked(torch_worker._worker_info)
            worker_module: Any = torch_worker
            worker_module._worker_info = self.info
        create = torch_loader._DatasetKind.create_fetcher

        def watched(kind: Any, dataset: Any, *rest: Any) -> Any:
            return self.fetcher(kind, dataset, *rest, create=create)

        # this process is the worker's own: nothing is to be put back
        kinds: Any = torch_loader._DatasetKind
        kinds.create_fetcher = staticmethod(watched)

    def fetcher(self, kind: Any, dataset: Any, *rest: Any, create: Any) -> "Fetcher":
        """Return the watched fetcher of a dataset, in a worker or in the main process."""
        private = private_generators(dataset, rest[1])
        start = marks(private)
        if self.alike:
            set_alike(private)
        return Fetcher(create(kind, dataset, *rest), dataset, private, start, self)


class Fetcher:
    """Makes batches as torch's fetcher does, which it holds, and records how."""

    def __init__(
        self, inner: Any, dataset: Any, private: dict[str, Any], start: Any, plan: Start
    ) -> None:
        self.inner, self.dataset, self.private = inner, dataset, private
        self.plan, self.start, self.fetched = plan, start, 0
        self.stream = isinstance(dataset, IterableDataset)
        self.reading: Any
        if self.stream:
            self.reading = inner.dataset_iter = Streaming(inner.dataset_iter)
        else:
            self.reading = inner.dataset = Reading(dataset)
        self.containers = {
            path: (value, len(value))
            for path, value in walk(dataset=dataset)
            if isinstance(value, dict | list)
        }
        self.meter = MemoryMeter() if plan.big else None
        self.first_memory = self.meter.look(True) if self.meter else None

    def fetch(self, index: Any) -> Parcel:
        """Make one batch; an error comes as the record's problem, with its sample."""
        info: Any = get_worker_info()
        info = getattr(info, "info", info)
        record = Record(info.id if info else 0, os.getpid(), time.perf_counter())
        reading = self.reading
        reading.read_s, reading.current = 0.0, []
        batch = None
        try:
            if self._compares():
                deque(islice(reading, FIRST), maxlen=0)
                record.shares = self.plan.info is not None and self.plan.info.asked
            else:
                batch = self.inner.fetch(index)
                if info and not self.fetched and (error := why_not_sent(batch)):
                    # torch would wait for it for ever
                    batch, record.problem = None, problem("send", index, error)
        except Exception as error:
            if self.stream and isinstance(error, StopIteration):
                raise
            record.problem = self._problem(index, error)
        record.read_s = reading.read_s
        if self.stream:
            record.digests, reading.digests = reading.digests, []
        else:
            record.indexes, reading.indexes = reading.indexes, []
        self._look(record)
        record.ended = time.perf_counter()
        return Parcel(batch, record)

    def _compares(self) -> bool:
        return self.plan.alike and self.stream

    def _look(self, record: Record) -> None:
        self.fetched += 1
        due = self.fetched & (self.fetched - 1) == 0  # at 1, 2, 4, 8, …
        if due:
            if self.fetched == 1:
                record.start = self.start
            # a generator may have been made by the first item
            found = private_generators(self.dataset, self.inner.collate_fn)
            record.marks = marks(found)
            record.filled = {
                path: len(value) - before
                for path, (value, before) in self.containers.items()
                if len(value) != before
            }
        if self.meter and (memory := self.meter.look(due)):
            record.memory = [m for m in (self.first_memory, memory) if m]
            self.first_memory = None

    def _problem(self, index: Any, error: Exception) -> Problem:
        what = "read" if self.reading.current else "collate"
        return problem(what, self.reading.current or index, error)
