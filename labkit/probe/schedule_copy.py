"""Copies of an optimizer's rates and its schedulers, and a run of them without a model."""

import copy
import warnings
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import MethodType
from typing import Any

import torch
from torch.nn import Module
from torch.optim import Optimizer
from torch.optim.lr_scheduler import ReduceLROnPlateau


@dataclass(frozen=True)
class Plan:
    """How the loop steps: the run's length, and when schedulers are stepped.

    Attributes:
        steps: optimizer steps.
        stepped: when `scheduler.step()` is called: after each "step" of the
            optimizer, each "epoch" or each micro-"batch".
        steps_per_epoch: optimizer steps in an epoch, where known.
        accumulate: micro-batches in one optimizer step.
        metrics: what each call of a plateau scheduler gets, in order.
    """

    steps: int
    stepped: str
    steps_per_epoch: int | None
    accumulate: int
    metrics: tuple[float, ...] | None

    def calls(self, step: int) -> tuple[int, int]:
        """Return how many scheduler calls come just before and after an update."""
        if self.stepped == "batch":
            return self.accumulate - 1, 1
        if self.stepped == "epoch":
            assert self.steps_per_epoch is not None
            return 0, int((step + 1) % self.steps_per_epoch == 0)
        return 0, 1

    def calls_before(self, step: int) -> int:
        """Return how many scheduler calls come before the first one of a step."""
        if self.stepped == "epoch":
            assert self.steps_per_epoch is not None
            return step // self.steps_per_epoch
        return step * (self.accumulate if self.stepped == "batch" else 1)

    @property
    def total_calls(self) -> int:
        """Scheduler calls in the whole run."""
        return self.calls_before(self.steps)


@dataclass(frozen=True)
class Run:
    """What a simulated run gave.

    Attributes:
        rates: learning rates by parameter group, then by optimizer step; shorter than
            the plan where a scheduler raised.
        raised: the scheduler's place, the number of its call and its error, or None.
    """

    rates: tuple[tuple[float, ...], ...]
    raised: tuple[int, int, Exception] | None


def flat(schedulers: Sequence[Any]) -> list[Any]:
    """Return the schedulers that are stepped one after the other at each call.

    A ChainedScheduler steps its parts just so, and gives way to them.
    """
    found: list[Any] = []
    for scheduler in schedulers:
        if type(scheduler).__name__ == "ChainedScheduler":
            found += flat(scheduler._schedulers)
        else:
            found.append(scheduler)
    return found


def simulate(
    optimizer: Optimizer, units: Sequence[Any], plan: Plan, only: int | None = None
) -> Run:
    """Run schedulers over a plan on copies, without a step of the optimizer.

    Args:
        optimizer: whose rates are followed; it stays as it is.
        units: its schedulers in the order they are stepped; they stay as they are.
        plan: the length of the run and the calls in it.
        only: the place of the one scheduler that is stepped, from a rate that another
            one's zero does not hide; None steps all.

    Returns:
        The rates that each optimizer step would use.

    Raises:
        ValueError: the schedulers cannot be copied.
    """
    stand_in, units = _copies(optimizer, units)
    stepping = list(enumerate(units))
    if only is not None:
        stepping = [stepping[only]]
        for group in stand_in.param_groups:
            if float(group["lr"]) == 0:
                group["lr"] = copy.deepcopy(group.get("initial_lr", group["lr"]))
    rates: list[list[float]] = [[] for _ in stand_in.param_groups]
    call = 0

    def advance(calls: int) -> None:
        nonlocal call
        for _ in range(calls):
            for place, unit in stepping:
                try:
                    _step(unit, plan, call)
                except Exception as error:
                    raise _Raised(place, call + 1, error) from error
            call += 1

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the loop's own run will say what torch says
        try:
            for step in range(plan.steps):
                before, after = plan.calls(step)
                advance(before)
                for seen, group in zip(rates, stand_in.param_groups, strict=True):
                    seen.append(float(group["lr"]))
                advance(after)
        except _Raised as raised:
            return Run(tuple(map(tuple, rates)), raised.args)
    return Run(tuple(map(tuple, rates)), None)


class _Raised(Exception):
    """A scheduler's `step()` raised: its place, the number of the call, the error."""


def parts(scheduler: Any) -> Iterator[Any]:
    """Yield a scheduler and the ones inside it, at any depth."""
    yield scheduler
    for inner in getattr(scheduler, "_schedulers", ()):
        yield from parts(inner)


def _step(unit: Any, plan: Plan, call: int) -> None:
    if not isinstance(unit, ReduceLROnPlateau):
        unit.step()
    elif plan.metrics is not None:
        unit.step(plan.metrics[call])


def _copies(optimizer: Optimizer, units: Sequence[Any]) -> tuple[Any, list[Any]]:
    memo: dict[int, Any] = {}
    for group in optimizer.param_groups:
        memo.update({id(p): torch.zeros(()) for p in group["params"]})
    for unit in units:
        for part in parts(unit):
            memo.update(_shared(part))
    # not a copy of the optimizer: its state may be as large as two models
    stand_in: Any = object.__new__(type(optimizer))
    vars(stand_in).update(vars(optimizer))
    memo[id(optimizer)] = stand_in
    try:
        stand_in.state = defaultdict(dict)
        stand_in.defaults = copy.deepcopy(optimizer.defaults, memo)
        stand_in.param_groups = copy.deepcopy(optimizer.param_groups, memo)
        copied = copy.deepcopy(list(units), memo)
    except Exception as error:
        kinds = " and ".join(type(unit).__name__ for unit in units)
        raise ValueError(
            f"preview_schedule works on copies, and {kinds} cannot be copied "
            f"({type(error).__name__}: {error})."
        ) from error
    # schedulers ask whether the optimizer was stepped, and warn where it was not
    stand_in.step = _no_step
    stand_in._opt_called = True
    return stand_in, copied


def _no_step() -> None:
    """Stand in for `optimizer.step`."""


_no_step._wrapped_by_lr_sched = True  # type: ignore[attr-defined]


def _shared(part: Any) -> dict[int, Any]:
    """Return what a scheduler refers to and must not be copied deeply: models.

    A method given as `lr_lambda` would bring in its whole trainer: a shallow copy of
    that is enough for what the method assigns to stay away from the original.
    """
    shared: dict[int, Any] = {}
    for value in vars(part).values():
        for each in value if isinstance(value, list | tuple) else [value]:
            if isinstance(each, Module):
                shared[id(each)] = each
            elif isinstance(each, MethodType) and each.__self__ is not part:
                shared[id(each.__self__)] = copy.copy(each.__self__)
    return shared
