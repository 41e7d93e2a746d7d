"""Answers to the exercise of part 4.1 that people really give, right and wrong."""

import copy
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset

Load = Callable[[Any], Tensor]
Augment = Callable[[Tensor], Tensor]


class CachedDataset(Dataset[Tensor]):
    def __init__(
        self, paths: Sequence[Any], load: Load, augment: Augment | None = None
    ) -> None:
        self.x = torch.stack([load(path) for path in paths])
        self.augment = augment

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, i: int) -> Tensor:
        x = self.x[i].clone()
        return x if self.augment is None else self.augment(x)


class AsArray(Dataset[Tensor]):
    def __init__(
        self, paths: Sequence[Any], load: Load, augment: Augment | None = None
    ) -> None:
        self.array = np.stack([load(path).numpy() for path in paths])
        self.augment = augment or (lambda x: x)

    def __len__(self) -> int:
        return self.array.shape[0]

    def __getitem__(self, i: int) -> Tensor:
        return self.augment(torch.tensor(self.array[i]))  # tensor() copies


class AsList(Dataset[Tensor]):
    def __init__(
        self, paths: Sequence[Any], load: Load, augment: Augment | None = None
    ) -> None:
        self.kept = tuple(map(load, paths))
        self.augment = augment

    def __len__(self) -> int:
        return len(self.kept)

    def __getitem__(self, i: int) -> Tensor:
        own = copy.deepcopy(self.kept[i])
        return self.augment(own) if self.augment else own


class CacheAfterTransform(CachedDataset):
    """The article's: what comes first is kept."""

    def __init__(
        self, paths: Sequence[Any], load: Load, augment: Augment | None = None
    ) -> None:
        super().__init__(paths, load, augment)
        self.cache: dict[int, Tensor] = {}

    def __getitem__(self, i: int) -> Tensor:
        if i not in self.cache:
            self.cache[i] = super().__getitem__(i)
        return self.cache[i].clone()


class AugmentedInInit(CachedDataset):
    def __init__(
        self, paths: Sequence[Any], load: Load, augment: Augment | None = None
    ) -> None:
        made = load if augment is None else lambda path: augment(load(path))
        super().__init__(paths, made)


class NeverCached(CachedDataset):
    def __init__(
        self, paths: Sequence[Any], load: Load, augment: Augment | None = None
    ) -> None:
        self.paths, self.load, self.augment = paths, load, augment

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, i: int) -> Tensor:
        x = self.load(self.paths[i])
        return x if self.augment is None else self.augment(x)


class FilledOnDemand(NeverCached):
    """Before the transform, and filled by whoever asks: by workers, into their copy."""

    def __init__(
        self, paths: Sequence[Any], load: Load, augment: Augment | None = None
    ) -> None:
        super().__init__(paths, load, augment)
        self.cache: dict[int, Tensor] = {}

    def __getitem__(self, i: int) -> Tensor:
        if i not in self.cache:
            self.cache[i] = self.load(self.paths[i])
        x = self.cache[i].clone()
        return x if self.augment is None else self.augment(x)


class HandsOutTheCache(CachedDataset):
    """Clones for the augmentation, which may write, and forgets who comes after."""

    def __getitem__(self, i: int) -> Tensor:
        return self.x[i] if self.augment is None else self.augment(self.x[i].clone())


class AugmentsTheCache(CachedDataset):
    """Clones what it returns, after the augmentation has written."""

    def __getitem__(self, i: int) -> Tensor:
        return (self.x[i] if self.augment is None else self.augment(self.x[i])).clone()


class SeededByIndex(CachedDataset):
    def __getitem__(self, i: int) -> Tensor:
        torch.manual_seed(i)
        return super().__getitem__(i)


class SeededByTheClock(CachedDataset):
    """Makes sure of fresh draws, and so no seed repeats a run."""

    def __getitem__(self, i: int) -> Tensor:
        with torch.random.fork_rng(devices=[]):
            torch.seed()
            return super().__getitem__(i)


class InHalf(CachedDataset):
    """Half the memory, and other values."""

    def __init__(
        self, paths: Sequence[Any], load: Load, augment: Augment | None = None
    ) -> None:
        super().__init__(paths, load, augment)
        self.x = self.x.half()

    def __getitem__(self, i: int) -> Tensor:
        return super().__getitem__(i).float()


class AlwaysAugments(CachedDataset):
    """Takes it that there is an augmentation."""

    def __getitem__(self, i: int) -> Tensor:
        shifted = self.augment or (lambda x: x.flip(-1))
        return shifted(self.x[i].clone())


class OpenEnded(CachedDataset):
    """Counts one for each value of a photo, not for each photo."""

    def __len__(self) -> int:
        return self.x.numel()
