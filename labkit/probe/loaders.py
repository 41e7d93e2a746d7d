"""`watch_loader`: what a DataLoader does, without changing what it will do."""

from collections.abc import Callable
from typing import Any

from torch.utils.data import DataLoader, IterableDataset

from labkit.probe.finding import Finding
from labkit.probe.loader_advice import suggest
from labkit.probe.loader_checks import (
    cannot_send,
    check_arguments,
)
from labkit.probe.loader_order import kept_order
from labkit.probe.loader_pace import measure, timeline
from labkit.probe.loader_passes import Separate, run_apart, run_twin
from labkit.probe.loader_pickle import unpicklable
from labkit.probe.loader_random import kept_generators, private_generators
from labkit.probe.loader_result import LoaderReport
from labkit.probe.loader_samples import (
    count_samples,
    judge_samples,
    judge_stream,
    part_watched,
)
from labkit.probe.loader_stores import (
    Big,
    big_containers,
    judge_caches,
    judge_memory,
    judge_twice,
    memory_growth,
)
from labkit.probe.loader_streams import judge_streams
from labkit.probe.loader_twin import Run, start_method
from labkit.probe.loader_worker import Start


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
        # only after a fork are a worker's objects where they are here
        places = {path: each.places for path, each in big.items()}
        start = Start(loader.worker_init_fn, big=places if method == "fork" else None)
        first = run_twin(loader, start, batches, step)
        if not first.rows:
            raise ValueError(
                "watch_loader(loader): the loader gave no batch, and needs a dataset "
                "that fills at least one (drop_last leaves out what does not)."
            )
        apart = run_apart(loader, first, said) if twice else Separate()
    return _report(loader, first, apart, said, big, method, cannot_go, step)


def _report(
    loader: Any,
    first: Run,
    apart: Separate,
    said: list[Finding | str],
    big: dict[str, Big],
    method: str,
    cannot_go: tuple[str, ...],
    step: Any,
) -> LoaderReport:
    records = [row.record for row in first.rows]
    stream = isinstance(loader.dataset, IterableDataset)
    seen_twice, never = count_samples(loader, records, first.finished, stream)
    growth = memory_growth(first, big)
    if loader.num_workers:
        next_epoch = () if loader.persistent_workers else apart.start
        reseeded = {path for record in apart.twice for path in record.reseeded}
        said += judge_streams(records, next_epoch, stream, reseeded)
        said += judge_caches(records, stream, loader.persistent_workers)
        said += judge_memory(big, growth, method, part_watched(loader, first))
    if stream:
        said += judge_stream(records, apart.start, first.finished)
    else:
        said += judge_samples(loader, seen_twice, never)
    said += judge_twice(apart.twice, apart.others)
    if cannot_go:
        said.append(
            f"spawn, which Windows and macOS use, could not send this to a worker: "
            f"{'; '.join(cannot_go)} (page 4.2)"
        )
    pace = measure(loader, first, step is not None)
    spent = pace.waiting_s + pace.computing_s
    read = [row for record in apart.twice for row in record.twice]
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
        changed=tuple(str(row.index) for row in read if row.changed),
        findings=tuple(each for each in said if isinstance(each, Finding)),
        suggestions=tuple(suggest(pace)),
        notes=tuple(each for each in said if isinstance(each, str)),
        timeline=timeline(first),
    )
