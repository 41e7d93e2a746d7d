"""Methods that a training loop calls, replaced while a step runs under watch."""

import functools
from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler
from torch.optim.swa_utils import AveragedModel

if TYPE_CHECKING:
    from labkit.probe.step_watch import StepWatch

Wrap = Callable[[Callable[..., Any]], Callable[..., Any]]


def replace(undo: ExitStack, owner: Any, name: str, wrap: Wrap) -> None:
    """Put `wrap(original)` in the place of an attribute, until `undo` closes."""
    original = getattr(owner, name)
    setattr(owner, name, wrap(original))
    undo.callback(setattr, owner, name, original)


def watch_calls(undo: ExitStack, watch: "StepWatch") -> None:
    """Watch GradScalers, schedulers and averaged models, until `undo` closes.

    What such a call changes is kept before it runs.
    """
    for name in ("scale", "unscale_", "step", "update"):
        replace(undo, torch.amp.GradScaler, name, _scaler(watch, name))
    for kind in _with_subclasses(LRScheduler):
        if "step" in vars(kind):
            replace(undo, kind, "step", _scheduler(watch))
    replace(undo, AveragedModel, "update_parameters", _average(watch))


def _scaler(watch: "StepWatch", name: str) -> Wrap:
    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def call(scaler: Any, *args: Any, **kwargs: Any) -> Any:
            watch.keeper.attributes(scaler)
            held = args[0] if args else kwargs.get("optimizer")
            if not isinstance(held, Optimizer):
                result = original(scaler, *args, **kwargs)
                if name == "scale":
                    on = scaler.is_enabled() and scaler.get_scale() != 1.0
                    watch.scale_pending = on
                return result
            watch.meet(held)
            for track in watch.owned(held):
                track.look_for_clipping()
            clock = watch.arrivals.clock
            result = original(scaler, *args, **kwargs)
            for track in watch.owned(held):
                track.reset_limits()
            if name == "step" and watch.arrivals.clock == clock:
                watch.skipped += 1
                watch.judge(held)
            return result

        return call

    return wrap


def _scheduler(watch: "StepWatch") -> Wrap:
    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def step(scheduler: Any, *args: Any, **kwargs: Any) -> Any:
            _keep_scheduler(watch, scheduler)
            return original(scheduler, *args, **kwargs)

        return step

    return wrap


def _keep_scheduler(watch: "StepWatch", scheduler: Any) -> None:
    watch.keeper.optimizer(scheduler.optimizer)
    watch.keeper.attributes(scheduler)
    # a chain of them moves its members by other methods too
    for member in getattr(scheduler, "_schedulers", ()):
        _keep_scheduler(watch, member)


def _average(watch: "StepWatch") -> Wrap:
    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def update(average: nn.Module, *args: Any, **kwargs: Any) -> Any:
            for module in average.modules():
                watch.keeper.module(module)
            return original(average, *args, **kwargs)

        return update

    return wrap


def _with_subclasses(kind: type) -> list[type]:
    found = [kind]
    sub: type
    for sub in kind.__subclasses__():
        found += _with_subclasses(sub)
    return found
