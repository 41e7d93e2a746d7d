"""`watch_loader`: what a DataLoader does, without changing what it will do."""

import multiprocessing
import sys
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any

from torch.utils.data import DataLoader, IterableDataset

from labkit.probe.finding import Finding
from labkit.probe.loader_advice import suggest
from labkit.probe.loader_checks import (
    cannot_read,
    cannot_send,
    check_arguments,
    start_method,
    worker_died,
)
from labkit.probe.loader_order import kept_order
from labkit.probe.loader_pace import measure, timeline
from labkit.probe.loader_pickle import unpicklable
from labkit.probe.loader_random import kept_generators, private_generators
from labkit.probe.loader_result import LoaderReport
from labkit.probe.loader_samples import count_samples, judge_samples, judge_stream
from labkit.probe.loader_stores import (
    big_containers,
    judge_caches,
    judge_memory,
    judge_twice,
    memory_growth,
)
from labkit.probe.loader_streams import judge_streams
from labkit.probe.loader_twice import MOST, Twice, as_it_is
from labkit.probe.loader_twin import Run, Twin
from labkit.probe.loader_worker import Record, Start


def watch_loader(
    loader: DataLoader[Any],
    step: Callable[[Any], Any] | None = None,
    *,
    batches: int | None = 200,
    twice: bool = True,
) -> LoaderReport:
    """Iterate a loader like an epoch would, and report what it does and what is wrong.

    A twin with the same dataset, samplers and functions is iterated. The loader's next
    epoch has the order and the random state that it would have had; workers that live
    on are left alone. Without workers the dataset is read in this process, as always.

    Args:
        loader: a DataLoader that is not being iterated.
        step: called with each batch, as the training step would be.
        batches: how many are watched at most; None for the whole epoch.
        twice: whether a separate pass reads a few items twice from one random state,
            and starts the workers once more to compare their random streams. It runs
            in worker processes, also where the loader has none.

    Returns:
        A LoaderReport; `.findings` are the faults, `.plot()` draws the timeline.

    Raises:
        TypeError: `loader` is no DataLoader, or `step` cannot be called.
        ValueError: `batches` is below 1, the loader is empty or being iterated, or its
            workers are started by spawn and cannot be sent what they need.
        RuntimeError: a sample cannot be read or a batch collated, or a worker died.

    Example:
        >>> watch_loader(DataLoader(range(8), batch_size=4))
        <LoaderReport: 2 batches (the whole epoch), no workers; no findings>
    """
    check_arguments(loader, step, batches)
    method = start_method(loader)
    cannot_go = unpicklable(loader)
    if cannot_go and method not in ("", "fork"):
        raise cannot_send(method, cannot_go)
    big = big_containers(loader.dataset) if loader.num_workers else {}
    private = private_generators(loader.dataset, loader.collate_fn)
    said: list[Finding | str] = []
    with kept_order(loader), kept_generators(private):
        first = _run(loader, Start(loader.worker_init_fn, big=bool(big)), batches, step)
        if not first.rows:
            raise ValueError(
                "watch_loader(loader): the loader gave no batch, and needs a dataset "
                "that fills at least one (drop_last leaves out what does not)."
            )
        second, again = _separate(loader, first, said) if twice else ([], [])
    return _report(loader, first, second, again, said, big, method, cannot_go, step)


def _run(loader: Any, start: Start, batches: int | None, step: Any) -> Run:
    twin = Twin(loader, start)
    try:
        run = twin.run(batches, step)
    except RuntimeError as error:
        if (said := worker_died(error, twin)) is None:
            raise
        raise said from error
    last = run.rows[-1].record if run.rows else None
    if last and last.problem:
        raise cannot_read(last.problem, loader.num_workers, last.worker)
    return run


def _separate(
    loader: Any, first: Run, said: list[Finding | str]
) -> tuple[list[Record], list[Record]]:
    """Return the records of the workers' next start, and of items read twice."""
    second: list[Record] = []
    if loader.num_workers:
        start = Start(loader.worker_init_fn, alike=True)
        run = _run(loader, start, loader.num_workers, None)
        second = [row.record for row in run.rows]
    fork = sys.platform == "linux" and "fork" in multiprocessing.get_all_start_methods()
    indexes = _some(first) if not isinstance(loader.dataset, IterableDataset) else [0]
    twin = Twin(
        loader,
        Twice(loader.worker_init_fn if loader.num_workers else None),
        num_workers=1,
        batch_size=None,
        batch_sampler=None,
        sampler=indexes,
        collate_fn=as_it_is,
        prefetch_factor=2,
        timeout=loader.timeout or 60,
        pin_memory=False,
    )
    if fork:
        twin.loader.multiprocessing_context = "fork"
    try:
        rows = twin.run(len(indexes)).rows
    except Exception as error:  # whatever the learner's dataset raises the second time
        said.append(f"no item could be read twice: {_first_line(error)}")
        rows = []
    return second, [row.record for row in rows]


def _report(
    loader: Any,
    first: Run,
    second: list[Record],
    again: list[Record],
    said: list[Finding | str],
    big: dict[str, int],
    method: str,
    cannot_go: tuple[str, ...],
    step: Any,
) -> LoaderReport:
    records = [row.record for row in first.rows]
    stream = isinstance(loader.dataset, IterableDataset)
    seen_twice, never = count_samples(loader, records, first.finished, stream)
    growth = memory_growth(first)
    if loader.num_workers:
        next_epoch = [] if loader.persistent_workers else second
        said += judge_streams(records, next_epoch, stream)
        said += judge_caches(records, stream, loader.persistent_workers)
        said += judge_memory(big, growth, method)
    if stream:
        said += judge_stream(records, second, first.finished)
    else:
        said += judge_samples(loader, seen_twice, never)
    said += judge_twice(again)
    if cannot_go:
        said.append(
            f"spawn, which Windows and macOS use, could not send this to a worker: "
            f"{'; '.join(cannot_go)} (page 4.2)"
        )
    pace = measure(loader, first, step is not None)
    spent = pace.waiting_s + pace.computing_s
    changed = [str(i) for record in again for i, change, *_ in record.twice if change]
    return LoaderReport(
        batches=len(records),
        finished=first.finished,
        workers=loader.num_workers,
        start_method=method,
        total_s=pace.total_s,
        startup_s=pace.startup_s,
        waiting_s=pace.waiting_s,
        computing_s=pace.computing_s,
        waiting_share=pace.waiting_s / spent if step and spent else None,
        item_s=pace.item_s,
        busy=pace.busy,
        seen_twice=seen_twice,
        never_seen=never,
        memory_bytes=tuple(m.share for m in first.memory.values() if m),
        growth_bytes=max(growth.values(), default=None),
        unpicklable=cannot_go,
        changed=tuple(changed),
        findings=tuple(each for each in said if isinstance(each, Finding)),
        suggestions=tuple(suggest(pace)),
        notes=tuple(each for each in said if isinstance(each, str)),
        timeline=timeline(first),
    )


def _some(run: Run) -> list[Any]:
    seen: Iterable[Any] = (i for row in run.rows for i in row.record.indexes)
    return list(dict.fromkeys(islice(seen, MOST)))


def _first_line(error: Exception) -> str:
    said = str(error).splitlines()
    return f"{type(error).__name__}: {said[-1] if said else ''}"
