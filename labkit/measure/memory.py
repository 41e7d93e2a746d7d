"""Tensor memory over a block of code: `track_memory`."""

import weakref
from collections.abc import Iterator
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any

import torch
from torch.nn import Module
from torch.nn.modules.module import register_module_parameter_registration_hook
from torch.optim import Optimizer
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)
from torch.utils._python_dispatch import _get_current_dispatch_mode_stack

from labkit.measure.memory_counter import Counter
from labkit.measure.memory_ledger import Ledger
from labkit.measure.memory_storages import storages
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
    uncompiled in the block. On torch 2.6 autograd doesn't tell what it saves: there,
    results of a forward without a backward count as activations if they are alive at
    the end, and as temporary if not.

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
    return _Block(model, optimizer, inputs)


class _Block(AbstractContextManager[MemoryTrace]):
    """One tracked block: puts the counter and its hooks in place, and away again."""

    def __init__(
        self, model: Module | None, optimizer: Optimizer | None, inputs: Any
    ) -> None:
        self._given = model, optimizer, inputs
        self._parameters: list[weakref.ref[torch.Tensor]] = []
        self._optimizers: weakref.WeakSet[Optimizer] = weakref.WeakSet()
        self._ledger = Ledger()
        self._counter = Counter(self._ledger)
        self._trace: MemoryTrace | None = None
        self._hooks: list[Any] = []

    def __enter__(self) -> MemoryTrace:
        if self._trace is not None:
            raise RuntimeError(
                "track_memory was entered a second time with the same object, and each "
                "block needs its own: call track_memory(...) in the with line."
            )
        self._trace = MemoryTrace.awaited()
        self._count_given()
        _start_allocator_peak()
        self._hooks = [
            register_module_parameter_registration_hook(self._on_parameter),
            register_optimizer_step_pre_hook(self._before_step),
            register_optimizer_step_post_hook(self._after_step),
        ]
        self._counter.__enter__()
        return self._trace

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._counter.__exit__(kind, error, traceback)
        for hook in self._hooks:
            hook.remove()
        assert self._trace is not None
        self._counter.finish()
        self._name_known()
        ledger = self._ledger
        ledger.fold()
        history = ledger.history()
        self._trace.fill(
            peak_bytes=ledger.peak_bytes,
            live_bytes=ledger.live_bytes,
            by_kind=history.at_peak(),
            allocated_bytes=ledger.allocated_bytes,
            allocations=ledger.allocations,
            allocator_peak_bytes=_allocator_peak(self._counter),
            history=history,
        )
        # an error's traceback may hold this object for long: let go of everything
        ledger.clear()
        self._parameters.clear()
        self._optimizers.clear()

    def _count_given(self) -> None:
        # what is given may be freed in the block: it is held no longer than this
        (model, optimizer, inputs), self._given = self._given, (None, None, ())
        parameters = list(model.parameters()) if model is not None else []
        self._parameters += map(weakref.ref, parameters)
        self._count(parameters, "parameter")
        self._count([parameter.grad for parameter in parameters], "gradient")
        if optimizer is not None:
            self._optimizers.add(optimizer)
            self._count(list(optimizer.state.values()), "optimizer state")
        self._count(inputs, "input")
        if model is not None:
            self._count(list(model.buffers()), "other")
        self._ledger.begin()

    def _count(self, value: Any, kind: str) -> None:
        for storage in storages(value):
            if self._ledger.find(storage) is None:
                self._ledger.add(storage, kind)

    def _on_parameter(self, module: Module, name: str, parameter: Any) -> None:
        if parameter is not None:
            self._parameters.append(weakref.ref(parameter))
            self._ledger.name(parameter, "parameter")

    def _before_step(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        if optimizer not in self._optimizers:
            self._optimizers.add(optimizer)
            self._name_all_of(optimizer)
        # gradients may have been put in place by hand
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._ledger.name(parameter.grad, "gradient")
        self._counter.made_in_step = []

    def _after_step(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        made, self._counter.made_in_step = self._counter.made_in_step, None
        # state is made in the first step; later ones leave nothing behind
        if made and any(entry() is not None for entry in made):
            self._name_all_of(optimizer)

    def _name_all_of(self, optimizer: Optimizer) -> None:
        for group in optimizer.param_groups:
            self._name_parameters(group["params"])
        self._ledger.name(list(optimizer.state.values()), "optimizer state")

    def _name_parameters(self, parameters: list[torch.Tensor]) -> None:
        for parameter in parameters:
            self._ledger.name(parameter, "parameter")
            self._ledger.name(parameter.grad, "gradient")

    def _name_known(self) -> None:
        """Name what was put in place without an operator, as `.data = ` does."""
        self._name_parameters(
            [p for ref in self._parameters if (p := ref()) is not None]
        )
        for optimizer in self._optimizers:
            self._name_all_of(optimizer)


def _start_allocator_peak() -> None:
    if not torch.cuda.is_initialized():
        return
    # the allocator has one peak: blocks around this one keep what it was until now
    for mode in _get_current_dispatch_mode_stack():
        if isinstance(mode, Counter):
            mode.allocator_peak = _allocator_peak(mode) or 0
    torch.cuda.reset_peak_memory_stats()


def _allocator_peak(counter: Counter) -> int | None:
    if not torch.cuda.is_initialized():
        return None
    return max(counter.allocator_peak, torch.cuda.max_memory_allocated())


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
