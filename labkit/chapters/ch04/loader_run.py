"""A small real DataLoader whose items sleep, watched for the timeline explorer."""

import sys
import time
import warnings
from dataclasses import dataclass, replace
from functools import cache, partial

from torch.utils.data import DataLoader, Dataset

from labkit.chapters.ch04.loader_model import Setting
from labkit.probe.loader_result import BatchTimes
from labkit.probe.loaders import watch_loader

TIMEOUT = 60  # seconds for one batch: far above any start of a worker


class SleepItems(Dataset[int]):
    """Items that cost time and no processor, like reads from a storage far away."""

    def __init__(self, seconds: tuple[float, ...]) -> None:
        self.seconds = seconds

    def __len__(self) -> int:
        return len(self.seconds)

    def __getitem__(self, index: int) -> int:
        time.sleep(self.seconds[index])
        return index


@dataclass(frozen=True)
class Measured:
    """A real epoch: when what happened, in seconds since the first batch was begun.

    `startup_s` is the time before that, in which the workers were started.
    """

    rows: tuple[BatchTimes, ...]
    startup_s: float


def start_method() -> str:
    """Return "fork" on Linux: it takes milliseconds, where "spawn" takes seconds.

    macOS has it too, but there its libraries may crash in a forked process (Source:
    https://docs.python.org/3/library/multiprocessing.html).
    """
    return "fork" if sys.platform == "linux" else "spawn"


@cache  # one setting, one picture: its sentence is the same when it is drawn again
def measure(setting: Setting) -> Measured:
    """Run an epoch of `setting` for real, and return its times; no process is left.

    Each batch is one item that sleeps for its cost, and the step sleeps too.
    """
    with warnings.catch_warnings():
        # more workers than cores is what the learner may want to see
        warnings.filterwarnings("ignore", "This DataLoader will create")
        loader = DataLoader(
            SleepItems(setting.costs),
            num_workers=setting.workers,
            prefetch_factor=setting.prefetch if setting.workers else None,
            multiprocessing_context=start_method() if setting.workers else None,
            collate_fn=list,  # a list of numbers: next to nothing to move
            timeout=TIMEOUT if setting.workers else 0,
        )
        step = partial(_sleep, setting.step)
        rows = watch_loader(loader, step, batches=None, twice=False).timeline
    zero = min(row.began for row in rows)
    return Measured(tuple(moved(row, zero) for row in rows), zero)


def _sleep(seconds: float, batch: object) -> None:
    time.sleep(seconds)


def moved(row: BatchTimes, zero: float) -> BatchTimes:
    """Return a batch's times with `zero` as their beginning."""
    times = ("began", "ended", "asked", "came", "done")
    return replace(row, **{name: getattr(row, name) - zero for name in times})
