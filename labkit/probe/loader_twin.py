"""A twin of a learner's loader that is iterated in its place, and leaves no trace."""

import multiprocessing
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from torch.utils.data import DataLoader, IterableDataset
from torch.utils.data import dataloader as torch_loader

from labkit.probe.loader_ending import (
    end_quickly,
    interrupt_later,
    kill,
    one_folder,
)
from labkit.probe.loader_memory import Memory, read_memory
from labkit.probe.loader_order import Told
from labkit.probe.loader_pages import shares_copied
from labkit.probe.loader_record import Record
from labkit.probe.loader_worker import Parcel, Start


@dataclass
class Row:
    """One batch at the trainer: when it was asked for, came, and was computed with."""

    asked: float
    came: float
    done: float
    record: Record


@dataclass
class Run:
    """What iterating a twin gave; `finished` tells whether the epoch came to its end.

    `memory` is each worker's at the end, by process id, and `copied` the share of each
    big container that it has copied, where that is known.
    """

    began: float
    ended: float = 0.0
    rows: list[Row] = field(default_factory=list)
    finished: bool = False
    pids: list[int] = field(default_factory=list)
    memory: dict[int, Memory | None] = field(default_factory=dict)
    copied: dict[int, dict[str, float]] = field(default_factory=dict)


def start_method(loader: DataLoader[Any]) -> str:
    """Return how the loader's workers are started; "" without workers."""
    if loader.num_workers == 0:
        return ""
    context = loader.multiprocessing_context
    if context is not None:
        return str(context.get_start_method())
    # asking for the default with allow_none=False would fix it for good
    chosen = multiprocessing.get_start_method(allow_none=True)
    return chosen or multiprocessing.get_all_start_methods()[0]


class Twin:
    """A loader with the learner's dataset, samplers and functions, and workers apart.

    Args:
        loader: the learner's; its own iterator and workers are not touched.
        start: goes into the place of its `worker_init_fn`.
        changes: attributes that the twin has otherwise.
    """

    def __init__(self, loader: DataLoader[Any], start: Start, **changes: Any) -> None:
        # torch guards some attributes against being set
        self.loader: Any = type(loader).__new__(type(loader))
        self.loader.__dict__.update(loader.__dict__)
        self.loader.__dict__.update(_iterator=None, worker_init_fn=start, **changes)
        # workers outlive the epoch, so that their memory can be read after it
        self.loader.__dict__["persistent_workers"] = self.loader.num_workers > 0
        self.loader.__dict__["_get_iterator"] = self._iterator
        self.given: list[Any] = []  # the indexes of each batch, in order
        if not isinstance(loader.dataset, IterableDataset):
            grouped = self.loader.batch_sampler is not None
            name = "batch_sampler" if grouped else "sampler"
            told = Told(self.loader.__dict__[name], self.given)
            self.loader.__dict__[name] = told
        self.start, self.real = start, None
        self.record: Record | None = None

    def run(self, batches: int | None, step: Callable[[Any], Any] | None = None) -> Run:
        """Iterate, at most `batches` batches, and end all workers."""
        with one_folder(start_method(self.loader)):
            run = Run(time.perf_counter())
            before = set(multiprocessing.active_children())
            try:
                self._run(run, batches, step)
            except BaseException:
                if self.real is None:  # not all workers were started
                    kill(set(multiprocessing.active_children()) - before)
                elif self.loader.num_workers:
                    with interrupt_later():
                        end_quickly(self.real)
                raise
            finally:
                with interrupt_later():
                    self._end()
        return run

    def _run(self, run: Run, batches: int | None, step: Any) -> None:
        iterator = iter(self.loader)
        run.pids = [w.pid for w in getattr(self.real, "_workers", ())]
        while batches is None or len(run.rows) < batches:
            asked = time.perf_counter()
            try:
                batch = next(iterator)
            except StopIteration:
                run.finished = True
                break
            came = time.perf_counter()
            if step is not None and self.record and not self.record.problem:
                step(batch)
            done = time.perf_counter()
            if self.record is not None:
                run.rows.append(Row(asked, came, done, self.record))
                if self.record.problem:
                    break
        run.ended = time.perf_counter()
        if not run.pids:
            return
        # the system takes milliseconds for each process, and does several at once
        with ThreadPoolExecutor(len(run.pids)) as threads:
            run.memory = dict(
                zip(run.pids, threads.map(read_memory, run.pids), strict=True)
            )
        for pid in run.pids:
            run.copied[pid] = shares_copied(pid, self.start.big)

    def worker_number(self, pid: int) -> int:
        """Return the number of the worker with a process id, or -1."""
        pids = [w.pid for w in getattr(self.real, "_workers", ())]
        return pids.index(pid) if pid in pids else -1

    def exit_code(self, number: int) -> int | None:
        """Return a worker's exit code: below 0 the signal's number; None if not told."""
        workers = getattr(self.real, "_workers", ())
        return workers[number].exitcode if 0 <= number < len(workers) else None

    def unfinished(self, number: int) -> list[Any]:
        """Return the indexes of the first batch that a worker has not given back."""
        tasks = getattr(self.real, "_task_info", {})
        for task, state in sorted(tasks.items()):
            if state[0] == number and len(state) == 1 and task < len(self.given):
                index = self.given[task]
                return list(index) if isinstance(index, list | tuple) else [index]
        return []

    def _iterator(self) -> Any:
        real: Any
        if self.loader.num_workers:
            with interrupt_later():
                real = self.real = type(self.loader)._get_iterator(self.loader)
        else:
            real = self.real = type(self.loader)._get_iterator(self.loader)
        if self.loader.num_workers == 0:
            real._dataset_fetcher = self.start.fetcher(
                real._dataset_kind,
                real._dataset,
                real._auto_collation,
                real._collate_fn,
                real._drop_last,
                create=torch_loader._DatasetKind.create_fetcher,
            )
        give = real._next_data

        def unpacked() -> Any:
            parcel: Parcel = give()
            self.record = parcel.record
            return parcel.batch

        real._next_data = unpacked
        return real

    def _end(self) -> None:
        # methods of their own keep the loader, and its queues, in a circle
        self.loader.__dict__.pop("_get_iterator", None)
        real: Any = self.real
        if real is None:
            return
        real.__dict__.pop("_next_data", None)
        if not hasattr(real, "_shutdown_workers"):
            return
        try:
            real._shutdown_workers()
        finally:
            kill(real._workers)
            self.loader.__dict__["_iterator"] = None
