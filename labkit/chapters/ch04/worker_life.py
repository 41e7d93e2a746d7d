"""The life of a DataLoader worker, in this process: what exercise 4.2 tests answers in.

A real worker costs seconds where processes are spawned, and hides the learner's line
when something raises.  tests/test_worker_life.py compares this with real workers.
"""

import copy
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch.utils.data import Dataset
from torch.utils.data._utils import worker as torch_worker

from labkit.lesson.exercise import given
from labkit.probe.rng import kept_rng

WORKERS = 2
ITEMS = 4  # that each worker makes
SEED = 4177  # of generators that nobody has seeded yet: no seed that an answer takes
NAMES = ("dataset.rng", "transform.rng")
Draws = dict[str, list[float]]  # by the generator, in the order of the items


class Jitter:
    """A transform with a generator of Python's."""

    def __init__(self) -> None:
        self.rng = random.Random(SEED)

    def __call__(self, x: float) -> tuple[float, float]:
        return x, self.rng.random()


class Augmented(Dataset[tuple[float, float]]):
    """A dataset with a generator of NumPy's, and a transform with one of its own."""

    def __init__(self) -> None:
        self.rng = np.random.default_rng(SEED)
        self.transform = Jitter()

    def __len__(self) -> int:
        return WORKERS * ITEMS

    def __getitem__(self, index: int) -> tuple[float, float]:
        return self.transform(self.rng.random())


def epoch(answer: Callable[[int], Any]) -> list[Draws]:
    """What the workers of one epoch draw, by generator, one entry a worker.

    As torch does it: a base seed from the caller's generator; in each worker the base
    plus its number seeds the global generators, and then `answer` is called.  Source:
    torch/utils/data/_utils/worker.py.
    """
    dataset = Augmented()
    base = int(torch.empty((), dtype=torch.int64).random_().item())
    return [life(answer, copy.deepcopy(dataset), base, id) for id in range(WORKERS)]


def life(answer: Callable[[int], Any], dataset: Any, base: int, id: int) -> Draws:
    with as_worker(dataset, base + id, id):
        given(answer, id)
        items = [dataset[index] for index in range(id, WORKERS * ITEMS, WORKERS)]
    return dict(zip(NAMES, map(list, zip(*items, strict=True)), strict=True))


@contextmanager
def as_worker(dataset: Any, seed: int, id: int) -> Iterator[None]:
    """Seeded as a worker, and `get_worker_info()` as in one; put back afterwards."""
    with kept_rng():
        random.seed(seed)
        np.random.seed(seed % 2**32)
        torch.manual_seed(seed)
        before = torch_worker._worker_info
        torch_worker._worker_info = torch_worker.WorkerInfo(
            id=id, num_workers=WORKERS, seed=seed, dataset=dataset
        )
        try:
            yield
        finally:
            torch_worker._worker_info = before
