"""One tracked block: what is put in place for it, and taken away again."""

import weakref
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


class Block(AbstractContextManager[MemoryTrace]):
    """Puts the counter and its hooks in place for a `with` block, and away again."""

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
