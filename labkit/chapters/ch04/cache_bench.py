"""What the answers to the exercise of part 4.1 are tested with."""

import copy
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import Dataset

from labkit.lesson.exercise import TODO, given

Answer = Callable[..., Any]
PHOTOS = 5


class Reader:
    """A load function that notes what it has been asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, path: str) -> Tensor:
        self.asked.append(path)
        return photo(path)

    def __deepcopy__(self, memo: dict[int, Any]) -> "Reader":
        return self  # copies of a dataset count into one list


class Jitter:
    """An augmentation that draws a brightness, in place where asked, and counts."""

    def __init__(self, in_place: bool = False) -> None:
        self.in_place, self.calls = in_place, 0

    def __call__(self, x: Tensor) -> Tensor:
        self.calls += 1
        factor = 1 + torch.rand(())
        return x.mul_(factor) if self.in_place else x * factor

    def __deepcopy__(self, memo: dict[int, Any]) -> "Jitter":
        return self


def photo(path: str) -> Tensor:
    """The photo of a path: seeded values that half precision cannot hold."""
    number = int(path.partition(".")[0])
    seeded = torch.Generator().manual_seed(number)
    return torch.rand(3, 4, 4, generator=seeded) + number


def paths() -> list[str]:
    return [f"{n}.jpg" for n in (3, 1, 4, 0, 2)]


def made(answer: Answer, load: Reader, *augment: Jitter) -> Any:
    """The dataset that the answer makes; one with neither method is not attempted."""
    dataset = given(answer, paths(), load, *augment)
    if not hasattr(dataset, "__len__") and not own_items(dataset):
        given(lambda: TODO)
    return dataset


def own_items(dataset: Any) -> bool:
    found = getattr(type(dataset), "__getitem__", None)
    return found is not None and found is not Dataset.__getitem__


def item(dataset: Any, i: int) -> Tensor:
    got = given(dataset.__getitem__, i)
    assert isinstance(got, Tensor), (
        f"item {i} should be a tensor; {type(got).__name__} came"
    )
    return got


def epoch(dataset: Any) -> list[Tensor]:
    """All items, as they came."""
    return [item(dataset, i).clone() for i in range(PHOTOS)]


def in_workers(dataset: Any, epochs: int, workers: int = 2) -> None:
    """What epochs with workers do to a dataset: each worker has a copy, for one epoch."""
    for _ in range(epochs):
        for worker in range(workers):
            own = copy.deepcopy(dataset)
            for i in range(worker, PHOTOS, workers):
                item(own, i)
