"""A DataLoader's timetable, predicted from what a batch and a step cost.

The model, in the words of torch's own loader (utils/data/dataloader.py, in order):
batches go to the workers in turn; `prefetch_factor * num_workers` of them are handed
out at the start, and one more whenever the trainer takes one; a worker makes its
batches one after the other; the trainer takes them in order.  Starting workers and
moving batches cost nothing here.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from labkit.probe.loader_result import BatchTimes


@dataclass(frozen=True)
class Setting:
    """One epoch: `costs` has the seconds to make each batch, `step` those of a step.

    `workers` and `prefetch` are the loader's num_workers and prefetch_factor.
    """

    workers: int
    prefetch: int
    costs: tuple[float, ...]
    step: float

    @property
    def ahead(self) -> int:
        """How many batches are handed out and not yet taken, at most."""
        return self.workers * self.prefetch


def predict(setting: Setting) -> tuple[BatchTimes, ...]:
    """Return when each batch is made, taken and computed with, in seconds from 0.

    Without workers the trainer makes each batch itself, when it asks for it.

    >>> [row.came for row in predict(Setting(1, 2, (4.0, 4.0), step=1.0))]
    [4.0, 8.0]
    """
    rows: list[BatchTimes] = []
    asked = 0.0
    for number, cost in enumerate(setting.costs):
        if setting.workers == 0:
            began = asked
        else:
            handed = (
                number - setting.ahead
            )  # the batch whose taking handed this one out
            before = number - setting.workers  # the same worker's last batch
            began = max(
                rows[handed].came if handed >= 0 else 0.0,
                rows[before].ended if before >= 0 else 0.0,
            )
        ended = began + cost
        came = max(asked, ended)
        worker = number % max(setting.workers, 1)
        rows.append(BatchTimes(worker, began, ended, asked, came, came + setting.step))
        asked = rows[-1].done
    return tuple(rows)


def share_waiting(rows: Sequence[BatchTimes]) -> float:
    """Return the share of the trainer's time that it waits, the first batch aside.

    As in `watch_loader`: waiting for the first batch is the start, and counted apart.
    """
    waited = sum(row.came - row.asked for row in rows[1:])
    spent = sum(row.done - row.asked for row in rows[1:])
    return waited / spent if spent else 0.0


def ready(rows: Sequence[BatchTimes]) -> list[tuple[float, int]]:
    """Return the times at which the number of ready, untaken batches changes, and it."""
    # to the microsecond: sums of floats that mean one time would make a change of none
    changes = sorted(
        [(round(row.ended, 6), 1) for row in rows]
        + [(round(row.came, 6), -1) for row in rows]
    )
    steps, count = [(0.0, 0)], 0
    for time, change in changes:
        count += change
        if steps[-1][0] == time:
            steps.pop()
        steps.append((time, count))
    return steps
