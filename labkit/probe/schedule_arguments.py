"""The arguments of `preview_schedule`: what is accepted, and what is said otherwise."""

from collections.abc import Sequence
from typing import Any

from torch.nn import Module
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler, ReduceLROnPlateau

from labkit.probe.schedule_copy import Plan

STEPPED = ("step", "epoch", "batch")


def checked_plan(
    steps: Any,
    stepped: Any,
    steps_per_epoch: Any,
    accumulate: Any,
    metrics: Sequence[float] | None,
) -> Plan:
    """Return the plan that the arguments make; TypeError or ValueError for others."""
    _check_count("steps", steps)
    _check_count("accumulate", accumulate)
    if steps_per_epoch is not None:
        _check_count("steps_per_epoch", steps_per_epoch)
    if stepped not in STEPPED:
        accepted = ", ".join(repr(word) for word in STEPPED)
        raise ValueError(
            f"preview_schedule: stepped is one of {accepted}, and got {stepped!r}."
        )
    if stepped == "epoch" and steps_per_epoch is None:
        raise ValueError(
            'preview_schedule: stepped="epoch" needs steps_per_epoch, the number of '
            "optimizer steps in an epoch, and got None."
        )
    try:
        values = None if metrics is None else tuple(float(m) for m in metrics)
    except (TypeError, ValueError) as error:
        raise TypeError(
            "preview_schedule: metrics is a sequence of numbers, one for each call of "
            f"the scheduler, and got {type(metrics).__name__} ({error})."
        ) from error
    return Plan(steps, stepped, steps_per_epoch, accumulate, values)


def _check_count(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        came = "nothing" if value is None else repr(value)
        raise TypeError(
            f"preview_schedule: {name} is a whole number of at least 1, and got {came}."
        )
    if value < 1:
        raise ValueError(f"preview_schedule: {name} is at least 1, and got {value}.")


def check_source(source: Any, given: list[Any]) -> None:
    """Raise TypeError for a first argument, or what follows it, of another kind."""
    accepted = "an optimizer, or a function that returns (optimizer, scheduler)"
    kind = type(source).__name__
    if _is_scheduler(source):
        raise TypeError(
            f"preview_schedule: the first argument is {accepted}, and got the scheduler "
            f"{kind}, which belongs after its optimizer."
        )
    if isinstance(source, Optimizer):
        if not given:
            raise TypeError(
                f"preview_schedule was given the optimizer {kind} and no scheduler: "
                "give the scheduler after it."
            )
    elif isinstance(source, Module) or not callable(source):
        raise TypeError(
            f"preview_schedule: the first argument is {accepted}, and got {kind}."
        )
    elif given:
        raise TypeError(
            "preview_schedule: a function that builds the optimizer is followed by "
            f"steps alone, and got {type(given[0]).__name__}."
        )


def checked_pair(result: Any) -> tuple[Optimizer, list[Any]]:
    """Return the optimizer and the schedulers that a function returned."""
    accepted = "(optimizer, scheduler), or (optimizer, [scheduler, …])"
    if not isinstance(result, tuple | list) or len(result) != 2:
        came = type(result).__name__
        if isinstance(result, tuple | list):
            came += f" of {len(result)}"
        raise TypeError(
            f"preview_schedule: the function returns {accepted}, and got {came}."
        )
    optimizer, schedulers = result
    if not isinstance(optimizer, Optimizer):
        raise TypeError(
            f"preview_schedule: the function returns {accepted}, and its first part is "
            f"{type(optimizer).__name__}."
        )
    if not isinstance(schedulers, tuple | list):
        schedulers = [schedulers]
    return optimizer, checked_schedulers(
        list(schedulers), "what the function returns second"
    )


def checked_schedulers(given: list[Any], what: str) -> list[Any]:
    """Return the schedulers, or raise TypeError for something else among them."""
    if len(given) == 1 and isinstance(given[0], tuple | list):
        given = list(given[0])
    for scheduler in given:
        if not _is_scheduler(scheduler):
            raise TypeError(
                f"preview_schedule: {what} must be learning-rate schedulers, and got "
                f"{type(scheduler).__name__}."
            )
    if not given:
        raise TypeError(
            f"preview_schedule: {what} must be learning-rate schedulers, and got none."
        )
    return given


def _is_scheduler(thing: Any) -> bool:
    # also one of another library that steps an optimizer's rates
    own = hasattr(thing, "optimizer") and callable(getattr(thing, "step", None))
    return isinstance(thing, LRScheduler) or (own and not isinstance(thing, Optimizer))


def check_metrics(plan: Plan, units: list[Any]) -> None:
    """Raise ValueError for metrics that no scheduler takes, or too few of them."""
    if plan.metrics is None:
        return
    if not any(isinstance(unit, ReduceLROnPlateau) for unit in units):
        names = ", ".join(type(unit).__name__ for unit in units)
        raise ValueError(
            "preview_schedule: metrics is for a ReduceLROnPlateau, and the schedulers "
            f"are {names}."
        )
    if len(plan.metrics) < plan.total_calls:
        raise ValueError(
            f"preview_schedule: the run steps the scheduler {plan.total_calls:,} times, "
            f"and metrics has {len(plan.metrics):,} values: give one for each."
        )


def like_schedulers(thing: Any) -> bool:
    """Return whether a thing is a scheduler, or may be a list of them."""
    return _is_scheduler(thing) or isinstance(thing, list | tuple | Optimizer)
