"""Datasets for test_loading.py that spawned and forkserver workers can import."""

import os
import random
import signal
import time
from typing import Any

import numpy as np
import torch
from torch.utils.data import Dataset, IterableDataset, get_worker_info


class Rows(Dataset):
    """Twelve rows of three numbers, stored in a tensor."""

    def __init__(self, size: int = 12) -> None:
        self.table = torch.arange(3.0 * size).view(size, 3)

    def __len__(self) -> int:
        return len(self.table)

    def __getitem__(self, index: int) -> torch.Tensor:
        return self.table[index] * 1.0


class Scaled(Rows):
    """Rows whose transform edits what is stored."""

    def __getitem__(self, index: int) -> torch.Tensor:
        return self.table[index].sub_(1).mul_(0.5)


class ScaledArrays(Rows):
    """The same with arrays in a dictionary, inside a sample of several parts."""

    def __init__(self, copies: bool) -> None:
        super().__init__()
        self.copies = copies
        self.rows = {i: np.arange(4.0) + i for i in range(len(self.table))}

    def __getitem__(self, index: int) -> dict[str, Any]:
        row = self.rows[index]
        if self.copies:
            row = row.copy()
        row -= 3
        return {"row": row, "label": index}


class CachedNoise(Rows):
    """Keeps samples in a cache of its own, and hands each out after adding to it."""

    def __init__(self, copies: bool) -> None:
        super().__init__()
        self.copies, self.cache = copies, dict.fromkeys(range(12))

    def __getitem__(self, index: int) -> torch.Tensor:
        if self.cache[index] is None:
            self.cache[index] = self.table[index].clone()
        held = self.cache[index]
        return held + torch.rand(3) if self.copies else held.add_(torch.rand(3))


class Jitter:
    """A transform that owns a generator."""

    def __init__(self, rng: Any) -> None:
        self.rng = rng

    def __call__(self, row: torch.Tensor) -> torch.Tensor:
        return row + float(self.rng.random())


class Augmented(Rows):
    """Rows, each changed by a transform with a generator of its own."""

    def __init__(self, rng: Any) -> None:
        super().__init__()
        self.transforms = [Jitter(rng)]

    def __getitem__(self, index: int) -> torch.Tensor:
        return self.transforms[0](super().__getitem__(index))


def seed_jitter(worker: int) -> None:
    """Give this worker's copy of the generator a seed of its own."""
    info = get_worker_info()
    info.dataset.transforms[0].rng = np.random.default_rng(info.seed)


def seed_alike(worker: int) -> None:
    """Seed every worker with one number, in every epoch."""
    torch.manual_seed(3)


class GlobalNoise(Rows):
    """Rows with noise from torch's global generator."""

    def __getitem__(self, index: int) -> torch.Tensor:
        return self.table[index] + torch.rand(3)


class Lines(IterableDataset):
    """Nine lines of text, shared out between the workers or not."""

    def __init__(self, share: bool, size: int = 9) -> None:
        self.share, self.size = share, size

    def __iter__(self) -> Any:
        info = get_worker_info()
        places = range(self.size)
        if self.share and info is not None:
            places = places[info.id :: info.num_workers]
        for place in places:
            yield {"text": f"line {place}", "id": place}


class NoisyLines(Lines):
    """Lines with noise, so that no two copies of one are equal."""

    def __iter__(self) -> Any:
        for line in super().__iter__():
            yield line["id"] + torch.rand(())


class Texts(Rows):
    """Many texts, all read for one sample after the first, in a list or in an array."""

    def __init__(self, store: Any) -> None:
        super().__init__(4)
        self.store = store

    def __getitem__(self, index: int) -> int:
        for place in range(len(self.store) if index else 0):
            self.store[place]
        return index


class Cache(Rows):
    """Rows that are kept in a dictionary once they have been made."""

    def __init__(self) -> None:
        super().__init__(24)
        self.made: dict[int, torch.Tensor] = {}

    def __getitem__(self, index: int) -> torch.Tensor:
        if index not in self.made:
            self.made[index] = self.table[index] * 2
        return self.made[index].clone()


class Broken(Rows):
    """Rows of which one is bad: "error", "shape", "killed"; or all are: "slow", "local"."""

    def __init__(self, how: str) -> None:
        super().__init__()
        self.how = how

    def __getitem__(self, index: int) -> torch.Tensor:
        if self.how == "slow":
            time.sleep(0.2)
        elif index == 7 and self.how == "error":
            raise KeyError("no such row")
        elif index == 7 and self.how == "shape":
            return torch.zeros(2)
        elif self.how == "local":
            return lambda: index
        elif index == 7 and self.how == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        return self.table[index]


class Views(Rows):
    """Rows that are handed out as they are stored."""

    def __getitem__(self, index: int) -> torch.Tensor:
        return self.table[index]


def halve(rows: list[torch.Tensor]) -> torch.Tensor:
    """Collate rows, and edit each of them first."""
    return torch.stack([row.mul_(0.5) for row in rows])


def half(rows: list[torch.Tensor]) -> torch.Tensor:
    """The same without editing them."""
    return torch.stack([row * 0.5 for row in rows])


class SeededForEach(Augmented):
    """Holds a generator that gets a seed for each sample, so that copies do not matter."""

    def __init__(self) -> None:
        super().__init__(random.Random(0))

    def __getitem__(self, index: int) -> torch.Tensor:
        self.transforms[0].rng.seed(index)
        return super().__getitem__(index)


class MadeInTheWorker(Rows):
    """Makes its generator with the first sample, from the worker's seed."""

    rng: np.random.Generator | None = None

    def __getitem__(self, index: int) -> torch.Tensor:
        if self.rng is None:
            self.rng = np.random.default_rng(torch.initial_seed())
        return self.table[index] + self.rng.random()


class OutsideNoise(Rows):
    """Rows with noise from the system, which no seed reaches."""

    def __getitem__(self, index: int) -> torch.Tensor:
        return self.table[index] + random.SystemRandom().random()


class OwnArithmetic(Rows):
    """Rows with random numbers of its own making, from an ordinary attribute."""

    state = 7

    def __getitem__(self, index: int) -> torch.Tensor:
        self.state = (self.state * 1103515245 + 12345) % 2**31
        return self.table[index] + self.state / 2**31


class Drawn(IterableDataset):
    """Forty samples made at random, shared out by number."""

    def __iter__(self) -> Any:
        info = get_worker_info()
        for _ in range(40 // info.num_workers if info else 40):
            yield torch.rand(3)


class Nested(Dataset):
    """Rows that are containers of their own."""

    def __init__(self, rows: list[Any]) -> None:
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> int:
        return sum(1 for _ in self.rows[index])


class BadLine(Lines):
    """Lines of which the third cannot be read."""

    def __iter__(self) -> Any:
        for line in super().__iter__():
            if line["id"] == 2:
                raise ValueError("bad line")
            yield line


def fail_in_worker_1(worker: int) -> None:
    """Fail to start in one worker."""
    if worker == 1:
        raise OSError("no disk")
