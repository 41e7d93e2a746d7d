"""Tensor memory over a block of code: `track_memory`."""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch.nn import Module
from torch.optim import Optimizer

from labkit.measure.memory_block import Block
from labkit.measure.memory_trace import MemoryTrace


def track_memory(
    model: Module | None = None, optimizer: Optimizer | None = None, inputs: Any = ()
) -> AbstractContextManager[MemoryTrace]:
    """Count the bytes of tensors over a `with` block, by what they are for.

    Counted is each storage that one of torch's operators makes in the block: once,
    however many views it has, until it is freed. Storages that exist when the block
    begins count only if they are given here. The kinds are

    - "parameter": parameters of the model given, of modules built in the block, and
      what an optimizer that steps in it updates;
    - "gradient": what is, or becomes, the `.grad` of a leaf;
    - "optimizer state": what an optimizer holds in its `state`;
    - "input": the tensors given as inputs;
    - "activation": saved by autograd, or a recorded result that is still alive when a
      backward begins;
    - "temporary": all else that is freed in the block: results that no graph keeps,
      gradients of activations, an optimizer's scratch;
    - "other": all else: the given model's buffers, results alive at the end.

    A storage has one kind for its whole life.

    Not seen: what an operator uses while it runs, such as a convolution's or a sort's
    scratch (on CUDA the allocator's own peak stands beside the count); memory of NumPy
    and other libraries, also under a tensor made by `from_numpy`, `as_tensor` or
    `frombuffer`; `UntypedStorage(n)` and its `resize_`; files mapped into memory;
    other threads, except the backward's, and other processes. Tensors that
    `torch.load` reads count from when they are put together. A compiled function runs
    uncompiled in the block, and what can't do without the compiler, as
    `flex_attention`, fails in it. On torch 2.6 autograd doesn't tell what it saves:
    there, results of a forward without a backward count as activations if they are
    alive at the end, and as temporary if not.

    Args:
        model: its parameters, their gradients and its buffers count from the start.
        optimizer: its state counts from the start.
        inputs: a tensor, or tensors in lists, tuples or dicts, that count too.

    Returns:
        A context manager that gives a `MemoryTrace`, complete once the block ends,
        also by an error: `peak_bytes`, `live_bytes`, `by_kind`, `timeline`.

    Raises:
        TypeError: an argument that is none of these.

    Example:
        >>> with track_memory() as trace:
        ...     x = torch.ones(1000)
        ...     y = x[::2] + 1
        >>> trace
        <MemoryTrace: peak 6.00 kB (other 6.00 kB); 6.00 kB live at the end>
    """
    if model is not None and not isinstance(model, Module):
        raise _refusal("model", model, "a torch.nn.Module or None")
    if optimizer is not None and not isinstance(optimizer, Optimizer):
        raise _refusal("optimizer", optimizer, "a torch.optim.Optimizer or None")
    for value in _leaves(inputs):
        if not isinstance(value, torch.Tensor):
            accepted = "a tensor, or tensors in lists, tuples or dicts"
            raise _refusal("inputs", value, accepted)
    return Block(model, optimizer, inputs)


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, list | tuple):
        for part in value:
            yield from _leaves(part)
    elif isinstance(value, dict):
        yield from _leaves(list(value.values()))
    else:
        yield value


def _refusal(name: str, came: Any, accepted: str) -> TypeError:
    shown = type(came).__name__
    return TypeError(f"track_memory: {name} is {accepted}, and got {shown}.")
