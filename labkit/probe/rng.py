"""The random state of Python, NumPy and torch: kept over a block, and set for one."""

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch


@contextmanager
def kept_rng() -> Iterator[None]:
    """Put the random state back when the block ends, also by an error.

    Kept are Python's, NumPy's global one, and torch's on the CPU, on CUDA devices in
    use and on Apple's GPU. Generators that the block's code holds itself are not.

    Returns:
        A context manager.

    Example:
        >>> with kept_rng():
        ...     torch.manual_seed(0)
    """
    states = [(put, get()) for get, put in _sources()]
    try:
        yield
    finally:
        for put, state in states:
            put(state)


def seed_all(seed: int) -> None:
    """Seed what `kept_rng` keeps.

    Args:
        seed: a whole number from 0 to 2**32 - 1.

    Example:
        >>> seed_all(1)
    """
    random.seed(seed)
    np.random.seed(seed)
    # not torch.manual_seed: on a process that has not used CUDA yet it leaves a call
    # for later behind, which would reseed the user's devices
    torch.default_generator.manual_seed(seed)
    if torch.cuda.is_initialized():
        torch.cuda.manual_seed_all(seed)
    if torch.backends.mps.is_available():
        torch.mps.manual_seed(seed)


def _sources() -> list[tuple[Callable[[], Any], Callable[[Any], Any]]]:
    sources: list[tuple[Callable[[], Any], Callable[[Any], Any]]] = [
        (random.getstate, random.setstate),
        (np.random.get_state, np.random.set_state),
        (torch.get_rng_state, torch.set_rng_state),
    ]
    if torch.cuda.is_initialized():
        sources.append((torch.cuda.get_rng_state_all, torch.cuda.set_rng_state_all))
    if torch.backends.mps.is_available():
        sources.append((torch.mps.get_rng_state, torch.mps.set_rng_state))
    return sources
