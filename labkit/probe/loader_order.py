"""A loader's samplers and generators, kept as they are over a block."""

import copy
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from torch.utils.data import DataLoader

from labkit.probe.loader_random import KINDS, get_state, set_state


@contextmanager
def kept_order(loader: DataLoader[Any]) -> Iterator[None]:
    """Put a loader's samplers, and the generators they draw from, back afterwards."""
    with ExitStack() as undo:
        if loader.generator is not None:
            undo.callback(set_state, loader.generator, get_state(loader.generator))
        waiting = [loader.sampler, loader.batch_sampler]
        seen: list[Any] = []
        while waiting:
            sampler = waiting.pop()
            own = getattr(sampler, "__dict__", None)
            if own is None or any(sampler is other for other in seen):
                continue
            seen.append(sampler)
            undo.callback(_put_back, own, dict(own))
            for value in own.values():
                if isinstance(value, KINDS):
                    undo.callback(set_state, value, get_state(value))
                elif isinstance(value, list | dict | set | deque):
                    undo.callback(_refill, value, copy.copy(value))
                elif hasattr(value, "__iter__") and value is not loader.dataset:
                    waiting.append(value)  # a sampler inside
        yield


def _put_back(own: dict[str, Any], before: dict[str, Any]) -> None:
    own.clear()
    own.update(before)


def _refill(value: Any, before: Any) -> None:
    if isinstance(value, list):
        value[:] = before
        return
    value.clear()
    if isinstance(value, deque):
        value.extend(before)
    else:
        value.update(before)
