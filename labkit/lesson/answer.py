"""A learner's answer under test: how it is called, and what a call must leave alone."""

import ctypes
import inspect
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from labkit.lesson.evidence import short


class Todo:
    """What a stub returns until the learner writes an answer."""

    def __repr__(self) -> str:
        return "TODO"

    def __reduce__(self) -> str:
        return "TODO"  # the same object after a trip to another process


TODO = Todo()


class NotAttempted(BaseException):
    """The answer is still the stub.  No Exception, so that no test swallows it."""


@dataclass
class Call:
    """One call of the answer: with what, and what came of it."""

    arguments: str
    returned: Any = None
    error: BaseException | None = None


_calls: ContextVar[list[Call] | None] = ContextVar("calls", default=None)


@contextmanager
def noting_calls() -> Iterator[list[Call]]:
    """The list that `given` adds its calls to, inside this block."""
    calls: list[Call] = []
    token = _calls.set(calls)
    try:
        yield calls
    finally:
        _calls.reset(token)


def given(
    answer: Callable[..., Any],
    /,
    *args: Any,
    may_change: tuple[str, ...] = (),
    **kwargs: Any,
) -> Any:
    """In a test: what the answer, or a part of it, returns for these arguments.

    `answer` is the function, the class, or an object or method of the class.  A stub's
    TODO leaves the test as not attempted.  Tensors, arrays and the collections that
    hold them must come out of the call as they went in, except the parameters named in
    `may_change`: otherwise AssertionError.  What the answer raises passes through.

    >>> given(torch.add, torch.ones(2), torch.ones(2))
    tensor([2., 2.])
    """
    named = arguments(answer, args, kwargs)
    before = {name: fingerprint(value) for name, value in named.items()}
    said = ", ".join(f"{name} = {describe(value)}" for name, value in named.items())
    call = Call(said)
    calls = _calls.get()
    if calls is not None:
        calls.append(call)
    try:
        call.returned = answer(*args, **kwargs)
    except BaseException as error:
        call.error = error
        raise
    if holds_todo(call.returned):
        raise NotAttempted
    for name, value in named.items():
        assert name in may_change or fingerprint(value) == before[name], (
            f"your code changed its argument `{name}`, which belongs to the caller: "
            "return something new instead"
        )
    return call.returned


def arguments(
    answer: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> dict[str, Any]:
    """The arguments by the names that the answer gives them."""
    asked = answer.forward if isinstance(answer, torch.nn.Module) else answer
    try:
        return dict(inspect.signature(asked).bind(*args, **kwargs).arguments)
    except (TypeError, ValueError):  # they do not fit, or it has no signature
        numbered = {f"argument {n}": value for n, value in enumerate(args, 1)}
        return numbered | kwargs


def holds_todo(value: Any) -> bool:
    """Is TODO the value, or anywhere in a list, tuple or dict?"""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        return any(holds_todo(item) for item in value)
    return value is TODO


def fingerprint(value: Any) -> Any:
    """Something that is equal before and after a call only if `value` was left alone.

    Read straight from memory: the tests that count bytes must not see a copy.
    Modules, optimizers and other objects are the answer's to change.
    """
    if isinstance(value, torch.Tensor):
        facts = (value.dtype, tuple(value.shape), value.requires_grad)
        return (*facts, tensor_bytes(value))
    if isinstance(value, np.ndarray):
        if value.dtype.hasobject:
            return value.shape, fingerprint(value.ravel().tolist())
        flat = np.ascontiguousarray(value).reshape(-1)
        return value.dtype.str, value.shape, zlib.crc32(flat.view(np.uint8).data)
    if isinstance(value, dict):
        return [(short(key), fingerprint(item)) for key, item in value.items()]
    if isinstance(value, list | tuple):
        return [(id(item), fingerprint(item)) for item in value]
    if isinstance(value, set):
        return sorted(map(short, value))
    return id(value)


def tensor_bytes(tensor: torch.Tensor) -> int:
    """A checksum of the memory that the tensor looks at; elsewhere its version counter.

    The counter knows in-place operations, but not writes through NumPy or `.data`.
    """
    if tensor.layout is torch.strided and tensor.device.type == "cpu":
        storage = tensor.untyped_storage()
        if storage.device.type == "cpu" and storage.nbytes():  # not so: a fake tensor
            size = storage.nbytes()
            memory = (ctypes.c_char * size).from_address(storage.data_ptr())
            return zlib.crc32(memory)
    return 0 if tensor.is_inference() else tensor._version


def describe(value: Any, brief: bool = False) -> str:
    """A value in a few words: small ones as they are, large ones by kind and shape."""
    if isinstance(value, torch.Tensor):
        if value.numel() <= 8 and value.device.type == "cpu" and not brief:
            return short(value)
        place = "" if value.device.type == "cpu" else f" on {value.device}"
        kind = str(value.dtype).removeprefix("torch.")
        return f"{kind} tensor of shape {tuple(value.shape)}{place}"
    if isinstance(value, np.ndarray) and (value.size > 8 or brief):
        return f"{value.dtype} array of shape {value.shape}"
    if isinstance(value, list | tuple) and len(short(value, 73)) > 72:
        few = value[:100]  # a million items would take seconds
        items = list(dict.fromkeys(describe(item, brief=True) for item in few))
        some = ", ".join(items[:2]) + (", …" if len(items) > 2 else "")
        return f"{type(value).__name__} of {len(value)}: {some}"
    if isinstance(value, torch.nn.Module):
        return f"a {type(value).__name__}"
    if callable(value):
        return getattr(value, "__name__", type(value).__name__)
    return short(value)
