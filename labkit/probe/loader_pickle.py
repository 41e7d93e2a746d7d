"""Which of a loader's objects a spawned worker could not be sent."""

import inspect
import pickle
import sys
from multiprocessing.reduction import ForkingPickler
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader

from labkit.probe.loader_objects import children

_DEPTH = 8


class _Nowhere:
    """A file that keeps nothing."""

    def write(self, data: Any) -> int:
        return len(data)


class _Trial(pickle.Pickler):
    """Pickles all but the numbers in tensors and arrays, which always can be sent."""

    def persistent_id(self, thing: Any) -> str | None:
        if isinstance(thing, torch.Generator):
            # it pickles alone, but a worker that is being started dies of it
            raise pickle.PicklingError("a torch.Generator cannot be sent to a worker")
        if isinstance(thing, torch.Tensor | np.ndarray):
            return "data"
        if type(thing).__module__.startswith("multiprocessing."):
            return "shared"  # locks and values can be sent while a process starts
        if inspect.isclass(thing) or inspect.isfunction(thing):
            main = sys.modules["__main__"]
            if thing.__module__ == "__main__" and not hasattr(main, "__file__"):
                raise pickle.PicklingError(
                    f"{thing.__qualname__} is defined in a notebook cell"
                )
        return None


class _Sent(ForkingPickler):
    """Pickles a batch as a worker's queue does, all but the numbers in it."""

    def persistent_id(self, thing: Any) -> str | None:
        return "data" if isinstance(thing, torch.Tensor | np.ndarray) else None


def why_not_sent(batch: Any) -> Exception | None:
    """Return the error for a batch that no worker can send back, or None."""
    try:
        _Sent(_Nowhere()).dump(batch)
    except Exception as error:  # any method of the learner's may run here
        return error
    return None


def unpicklable(loader: DataLoader[Any]) -> tuple[str, ...]:
    """Return what spawn and forkserver could not send, as "path: reason" each.

    Tried are the dataset, `collate_fn` and `worker_init_fn`; nothing is changed, and
    no pickle is kept.

    Args:
        loader: a DataLoader.

    Returns:
        The innermost object that does not pickle, for each of the three.

    Example:
        >>> unpicklable(DataLoader([1, 2], collate_fn=lambda items: items))
        ("collate_fn: Can't pickle <function ...>",)
    """
    found = []
    for name in ("dataset", "collate_fn", "worker_init_fn"):
        value = getattr(loader, name)
        if reason := _reason(value):
            found.append(_innermost(name, value, reason, _DEPTH))
    return tuple(found)


def _innermost(path: str, value: Any, reason: str, depth: int) -> str:
    if depth and not inspect.isroutine(value):
        for inside, held in children(path, value):
            if inside.startswith(path) and (inner := _reason(held)):
                return _innermost(inside, held, inner, depth - 1)
    return f"{path}: {reason}"


def _reason(value: Any) -> str:
    try:
        _Trial(_Nowhere()).dump(value)
    except Exception as error:  # any method of the learner's may run here
        said = str(error).splitlines()
        return said[0] if said else type(error).__name__
    return ""
