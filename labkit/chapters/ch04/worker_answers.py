"""Answers to the exercise of part 4.2 that seeds a worker: right ones and wrong ones."""

import random
from typing import Any

import numpy as np
import torch
from torch.utils.data import get_worker_info


def seed_worker(worker_id: int) -> None:
    info: Any = get_worker_info()
    info.dataset.rng = np.random.default_rng(info.seed)
    info.dataset.transform.rng = random.Random(info.seed)


# --- right, written differently --------------------------------------------------------


def by_initial_seed(worker_id: int) -> None:
    """torch.initial_seed() is info.seed; a seed sequence keeps the two streams apart."""
    dataset = held()
    numpy, python = np.random.SeedSequence(torch.initial_seed()).spawn(2)
    dataset.rng = np.random.default_rng(numpy)
    dataset.transform.rng.seed(int(python.generate_state(1)[0]))


def from_the_global_ones(worker_id: int) -> None:
    """The global generators are seeded already: draw a seed from them."""
    dataset = held()
    dataset.rng = np.random.default_rng(random.getrandbits(64))
    dataset.transform.rng = random.Random(random.getrandbits(64))


# --- wrong ------------------------------------------------------------------------------


def all_alike(worker_id: int) -> None:
    reseed(held(), 42)


def by_the_id_only(worker_id: int) -> None:
    reseed(held(), worker_id)


def from_the_system(worker_id: int) -> None:
    reseed(held(), None)


def global_ones_only(worker_id: int) -> None:
    """What the documentation shows for the global generators."""
    seed = torch.initial_seed() % 2**32
    np.random.seed(seed)
    random.seed(seed)
    torch.manual_seed(seed)


def transform_forgotten(worker_id: int) -> None:
    held().rng = np.random.default_rng(torch.initial_seed())


def for_every_item(worker_id: int) -> None:
    """Seeds again with each item, as people do in `__getitem__`."""
    dataset, seed = held(), torch.initial_seed()

    class Anew:
        def random(self) -> float:
            return float(np.random.default_rng(seed).random())

    dataset.rng = Anew()
    dataset.transform.rng = Anew()


def held() -> Any:
    info: Any = get_worker_info()
    return info.dataset


def reseed(dataset: Any, seed: int | None) -> None:
    dataset.rng = np.random.default_rng(seed)
    dataset.transform.rng = random.Random(seed)
