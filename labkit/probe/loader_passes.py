"""The passes of `watch_loader`: one as an epoch, and those that are reported apart."""

import multiprocessing
import sys
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any, NamedTuple

from torch.utils.data import IterableDataset

from labkit.probe.finding import Finding
from labkit.probe.loader_checks import cannot_read, worker_died
from labkit.probe.loader_record import Record
from labkit.probe.loader_twice import MOST, Twice, as_it_is
from labkit.probe.loader_twin import Run, Twin
from labkit.probe.loader_worker import Start


class Separate(NamedTuple):
    """The records of the separate pass.

    `start` is of the workers' next start, `twice` of items that were read twice, and
    `others` of another process that did the same, where there was doubt.
    """

    start: Sequence[Record] = ()
    twice: Sequence[Record] = ()
    others: Sequence[Record] = ()


def run_twin(loader: Any, start: Start, batches: int | None, step: Any) -> Run:
    """Iterate a twin of the loader; RuntimeError where a sample or a worker fails."""
    twin = Twin(loader, start)
    try:
        run = twin.run(batches, step)
    except Exception as error:
        if (said := worker_died(error, twin)) is None:
            raise
        raise said from error
    last = run.rows[-1].record if run.rows else None
    if last and last.problem:
        raise cannot_read(last.problem, loader.num_workers, last.worker)
    return run


def run_apart(loader: Any, first: Run, said: list[Finding | str]) -> Separate:
    """Return the records of the workers' next start, and of items read twice."""
    start: list[Record] = []
    if loader.num_workers:
        run = run_twin(
            loader, Start(loader.worker_init_fn, alike=True), loader.num_workers, None
        )
        start = [row.record for row in run.rows]
    twice = _read_twice(loader, first, said)
    doubtful = any(r.changed and not r.edited for each in twice for r in each.twice)
    others = _read_twice(loader, first, said) if doubtful else []
    return Separate(start, twice, others)


def _read_twice(loader: Any, first: Run, said: list[Finding | str]) -> list[Record]:
    fork = sys.platform == "linux" and "fork" in multiprocessing.get_all_start_methods()
    indexes = _some(first) if not isinstance(loader.dataset, IterableDataset) else [0]
    twin = Twin(
        loader,
        Twice(
            loader.worker_init_fn if loader.num_workers else None,
            loader.collate_fn if loader.batch_sampler is not None else None,
        ),
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
        return [row.record for row in twin.run(len(indexes)).rows]
    except Exception as error:  # whatever the learner's dataset raises the second time
        died = worker_died(error, twin)
        if isinstance(died, KeyboardInterrupt):
            raise died from error
        said.append(f"no item could be read twice: {_first_line(error)}")
        return []


def _some(run: Run) -> list[Any]:
    seen: Iterable[Any] = (i for row in run.rows for i in row.record.indexes)
    # an index may be a list, which has no hash
    return list({repr(index): index for index in islice(seen, MOST)}.values())


def _first_line(error: Exception) -> str:
    said = str(error).splitlines()
    return f"{type(error).__name__}: {said[-1] if said else ''}"
