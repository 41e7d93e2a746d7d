"""The objects that a dataset or a function holds, each with the path that leads to it."""

import functools
import sys
from collections import deque
from collections.abc import Iterator
from itertools import islice
from pathlib import PurePath
from types import FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
import torch

_MOST = 3000  # objects looked at
_FIRST = 64  # elements looked at in one container: the rest are of the same kind
_LEAVES = (
    torch.Tensor,
    np.ndarray,
    torch.Generator,
    np.random.Generator,
    np.random.RandomState,
    str,
    bytes,
    int,
    float,
    complex,
    PurePath,
    type,
    ModuleType,
    type(None),
)
# what their functions use at module level is not the learner's
_OTHERS = {"builtins", "torch", "numpy", "PIL", "torchvision"}
_LIBRARIES = sys.stdlib_module_names | _OTHERS


def walk(**roots: Any) -> Iterator[tuple[str, Any]]:
    """Yield (path, object) for what the roots hold, and for the roots themselves.

    Followed are attributes, elements, closures, defaults, bound objects, and the names
    at module level that a learner's functions and methods use.

    Args:
        roots: an object for each name that its paths begin with.

    Returns:
        An iterator; each object comes once, nearer ones first.

    Example:
        >>> [path for path, _ in walk(dataset={"rng": 3})]
        ['dataset', "dataset['rng']"]
    """
    waiting = deque(roots.items())
    seen: dict[int, Any] = {}  # holds them, so that no id is used twice
    while waiting and len(seen) < _MOST:
        path, value = waiting.popleft()
        if id(value) in seen:
            continue
        seen[id(value)] = value
        yield path, value
        kind: Any = type(value)
        if not _is_leaf(kind):
            waiting.extend(children(path, value))


def children(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield (path, object) for what one object holds directly."""
    if isinstance(value, dict):
        # never a copy of all: that would touch each object, and copy its page
        for key, element in list(islice(value.items(), _FIRST)):
            yield f"{path}[{key!r}]", element
    elif isinstance(value, list | tuple | deque):
        for place, element in enumerate(islice(value, _FIRST)):
            yield f"{path}[{place}]", element
    elif isinstance(value, functools.partial):
        yield f"{path}.func", value.func
        yield from children(path, value.args)
        yield from children(path, value.keywords)
    elif isinstance(value, FunctionType):
        yield from _of_function(path, value)
    elif isinstance(value, MethodType):
        yield f"{path}.__self__", value.__self__
    # a list or dict of a class of its own holds attributes besides
    yield from _attributes(path, value)


def _attributes(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, FunctionType | MethodType | functools.partial):
        return
    for name, held in dict(getattr(value, "__dict__", None) or {}).items():
        yield f"{path}.{name}", held
    kind: Any = type(value)
    slots, methods = _of_kind(kind)
    for name in slots:
        if hasattr(value, name):
            yield f"{path}.{name}", getattr(value, name)
    for method in methods:
        yield from _of_function("", method)


@functools.lru_cache(maxsize=256)
def _is_leaf(kind: type) -> bool:
    """Return whether objects of a class hold nothing; asking torch each time is slow."""
    return issubclass(kind, _LEAVES)


@functools.lru_cache(maxsize=256)
def _of_kind(kind: type) -> tuple[list[str], list[FunctionType]]:
    """Return the slots and the learner's own methods of a class: many objects have it."""
    slots: list[str] = []
    methods: list[FunctionType] = []
    for base in kind.__mro__:
        own = vars(base).get("__slots__", ())
        names = (own,) if isinstance(own, str) else tuple(own)
        slots += [name for name in names if not name.startswith("__")]
        if not _is_library(base):
            methods += [m for m in vars(base).values() if isinstance(m, FunctionType)]
    return slots, methods


def _of_function(path: str, function: FunctionType) -> Iterator[tuple[str, Any]]:
    if _is_library(function):
        return
    code = function.__code__
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield name, cell.cell_contents
        except ValueError:  # a name that is bound later
            continue
    for place, value in enumerate(function.__defaults__ or ()):
        yield f"{path}.__defaults__[{place}]", value
    for name in code.co_names:
        if name in function.__globals__:
            yield name, function.__globals__[name]


def _is_library(thing: Any) -> bool:
    module = str(getattr(thing, "__module__", ""))
    return module.partition(".")[0] in _LIBRARIES
