"""The times of a watched run: in sums, and batch by batch."""

from statistics import median
from typing import Any

from labkit.probe.loader_advice import Pace
from labkit.probe.loader_result import BatchTimes
from labkit.probe.loader_twin import Run


def measure(loader: Any, run: Run, stepped: bool) -> Pace:
    """Return how fast a run's loader and trainer were; `stepped`: there was a step."""
    records = [row.record for row in run.rows]
    begun: dict[int, float] = {}
    ended: dict[int, float] = {}
    worked: dict[int, float] = {}
    for record in records:
        worker = record.worker
        begun.setdefault(worker, record.began)
        ended[worker] = record.ended
        worked[worker] = worked.get(worker, 0.0) + record.ended - record.began
    items = [(r.read_s, len(r.indexes) + len(r.digests)) for r in records]
    each = [seconds / number for seconds, number in items if number]
    return Pace(
        workers=loader.num_workers,
        total_s=run.ended - run.began,
        startup_s=max(begun.values()) - run.began,
        waiting_s=sum(row.came - row.asked for row in run.rows[1:]),
        computing_s=sum(row.done - row.came for row in run.rows[1:]) if stepped else 0,
        item_s=median(each) if each else None,
        busy=tuple(worked[w] / max(ended[w] - begun[w], 1e-9) for w in sorted(worked)),
        persistent=loader.persistent_workers,
        stepped=stepped,
    )


def timeline(run: Run) -> tuple[BatchTimes, ...]:
    """Return a run's batches with times since its beginning."""
    zero = run.began
    return tuple(
        BatchTimes(
            row.record.worker,
            row.record.began - zero,
            row.record.ended - zero,
            row.asked - zero,
            row.came - zero,
            row.done - zero,
        )
        for row in run.rows
    )
