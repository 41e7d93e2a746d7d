"""A loader's samplers and generators, kept as they are over a block."""

import copy
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import ModuleType
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from labkit.probe.loader_random import KINDS, get_state, set_state

_CONTAINERS = (list, dict, set, deque)
_FIXED = (int, float, complex, str, bytes, type(None), type, ModuleType, Dataset)


class Told:
    """A sampler that notes what it gives."""

    def __init__(self, sampler: Any, given: list[Any]) -> None:
        self.sampler, self.given = sampler, given

    def __iter__(self) -> Iterator[Any]:
        for index in self.sampler:
            self.given.append(index)
            yield index

    def __len__(self) -> int:
        return len(self.sampler)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.sampler, name)


@contextmanager
def kept_order(loader: DataLoader[Any]) -> Iterator[None]:
    """Put a loader's samplers, and the generators they draw from, back afterwards.

    Followed are attributes and elements; a generator function that has begun cannot be
    put back.

    Args:
        loader: a DataLoader.

    Returns:
        A context manager.

    Example:
        >>> with kept_order(loader):
        ...     first = next(iter(loader.sampler))
    """
    with ExitStack() as undo:
        waiting = [loader.generator, loader.sampler, loader.batch_sampler]
        seen: dict[int, Any] = {}  # holds them, so that no id is used twice
        while waiting:
            value = waiting.pop()
            fixed = isinstance(value, _FIXED) or value is loader.dataset
            if not fixed and id(value) not in seen:
                seen[id(value)] = value
                waiting += _keep(value, undo)
        yield


def _keep(value: Any, undo: ExitStack) -> list[Any]:
    """Note an object's state for `undo`, and return what it holds."""
    if isinstance(value, KINDS):
        undo.callback(set_state, value, get_state(value))
        return []
    if isinstance(value, torch.Tensor | np.ndarray):
        undo.callback(_write_back, value, copy.deepcopy(value))
        return []
    held: list[Any] = []
    if isinstance(value, _CONTAINERS):
        undo.callback(_refill, value, copy.copy(value))
        held += value.values() if isinstance(value, dict) else value
    elif isinstance(value, tuple):
        held += value
    own = getattr(value, "__dict__", None)
    if isinstance(own, dict):
        undo.callback(_put_back, own, dict(own))
        held += own.values()
    return held


def _put_back(own: dict[str, Any], before: dict[str, Any]) -> None:
    own.clear()
    own.update(before)


def _write_back(value: Any, before: Any) -> None:
    # where nothing has changed, nothing is written: it may be meant for reading only
    if isinstance(value, torch.Tensor):
        if not torch.equal(value, before):
            value.copy_(before)
    elif not np.array_equal(value, before):
        value[...] = before


def _refill(value: Any, before: Any) -> None:
    if isinstance(value, list):
        value[:] = before
        return
    value.clear()
    if isinstance(value, deque):
        value.extend(before)
    else:
        value.update(before)
