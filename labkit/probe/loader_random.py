"""Random generators that a loader's dataset and functions draw from."""

import hashlib
import pickle
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from labkit.probe.loader_objects import walk
from labkit.probe.rng import kept_rng, seed_all

KINDS = (
    torch.Generator,
    np.random.Generator,
    np.random.RandomState,
    random.Random,
)
GLOBAL = ("random", "numpy.random", "torch.default_generator")
"""The generators that every process has, by the names the marks use."""


def private_generators(dataset: Any, collate_fn: Any) -> dict[str, Any]:
    """Return the generators that a dataset or a collate function holds, by path."""
    return {
        path: value
        for path, value in walk(dataset=dataset, collate_fn=collate_fn)
        if isinstance(value, KINDS) and value is not torch.default_generator
    }


def marks(private: dict[str, Any]) -> dict[str, bytes]:
    """Return a short digest of every generator's state, the global ones' too."""
    states = {path: get_state(generator) for path, generator in private.items()}
    states["random"] = random.getstate()
    states["numpy.random"] = np.random.get_state()
    states["torch.default_generator"] = torch.get_rng_state().numpy().tobytes()
    return {path: _digest(state) for path, state in states.items()}


def get_state(generator: Any) -> Any:
    """Return the state of a generator of one of the four kinds."""
    if isinstance(generator, torch.Generator):
        return generator.get_state().numpy().tobytes()
    if isinstance(generator, np.random.Generator):
        return generator.bit_generator.state
    if isinstance(generator, np.random.RandomState):
        return generator.get_state()
    return generator.getstate() if _has_state(generator) else None


def set_state(generator: Any, state: Any) -> None:
    """Put back what `get_state` returned."""
    if isinstance(generator, torch.Generator):
        generator.set_state(torch.frombuffer(bytearray(state), dtype=torch.uint8))
    elif isinstance(generator, np.random.Generator):
        generator.bit_generator.state = state
    elif isinstance(generator, np.random.RandomState):
        generator.set_state(state)
    elif state is not None:
        generator.setstate(state)


def set_alike(private: dict[str, Any]) -> None:
    """Give every generator, the global ones too, a state that depends on nothing."""
    seed_all(1)
    for generator in private.values():
        if isinstance(generator, torch.Generator):
            generator.manual_seed(1)
        elif isinstance(generator, np.random.Generator):
            kind = type(generator.bit_generator)
            generator.bit_generator.state = kind(1).state
        else:
            generator.seed(1)


@contextmanager
def kept_generators(private: dict[str, Any]) -> Iterator[None]:
    """Put the states of the global and the given generators back afterwards."""
    states: list[tuple[Callable[..., None], Any, Any]] = [
        (set_state, generator, get_state(generator)) for generator in private.values()
    ]
    with kept_rng():
        try:
            yield
        finally:
            for put, generator, state in states:
                put(generator, state)


def _has_state(generator: random.Random) -> bool:
    return not isinstance(generator, random.SystemRandom)


def _digest(state: Any) -> bytes:
    return hashlib.blake2b(pickle.dumps(state), digest_size=8).digest()
