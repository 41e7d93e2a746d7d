"""What an optimizer and its schedulers show of the steps they have made so far."""

import gc
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import Any

import torch
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler, ReduceLROnPlateau

from labkit.probe.finding import Finding
from labkit.probe.schedule_copy import Plan, parts


@contextmanager
def noting_built() -> Iterator[list[Any]]:
    """Note the schedulers that are built in the block, also those thrown away.

    Returns:
        A context manager that gives the list of them, in order.
    """
    built: list[Any] = []
    originals = [(kind, kind.__init__) for kind in (LRScheduler, ReduceLROnPlateau)]

    def noting(init: Any) -> Any:
        @wraps(init)
        def build(self: Any, *args: Any, **kwargs: Any) -> None:
            if not any(self is one for one in built):
                built.append(self)
            init(self, *args, **kwargs)

        return build

    for kind, init in originals:
        setattr(kind, "__init__", noting(init))  # noqa: B010
    try:
        yield built
    finally:
        for kind, init in originals:
            setattr(kind, "__init__", init)  # noqa: B010


def existing_schedulers(optimizer: Optimizer, given: Sequence[Any]) -> list[Any]:
    """Return all schedulers in this process that belong to an optimizer.

    Args:
        optimizer: the optimizer.
        given: schedulers that are known; where there are no others, it's quick.
    """
    found = _on(optimizer)
    known = {id(one) for scheduler in given for one in _held(scheduler)}
    if all(id(one) in known for one in found):
        return found
    del found
    gc.collect()  # what was rebuilt in a notebook's cell may still wait for this
    return _on(optimizer)


def _on(optimizer: Optimizer) -> list[Any]:
    # a scheduler holds the optimizer itself, or by the dict of its attributes
    holders = gc.get_referrers(optimizer)
    attributes = [
        holder
        for holder in holders
        if type(holder) is dict and holder.get("optimizer") is optimizer
    ]
    if attributes:
        holders += gc.get_referrers(*attributes)
    found = {
        id(holder): holder
        for holder in holders
        # not isinstance: a proxy object may do anything when it's asked for its class
        if issubclass(type(holder), LRScheduler)
        and vars(holder).get("optimizer") is optimizer
    }
    return list(found.values())


def left_out(candidates: Sequence[Any], given: Sequence[Any]) -> Iterator[Finding]:
    """Yield a finding for each scheduler that shaped the rate and is never stepped.

    Args:
        candidates: schedulers of the optimizer, given ones among them.
        given: the schedulers that the loop steps, and what they hold.
    """
    held = {id(one) for scheduler in given for one in _held(scheduler)}
    for scheduler in candidates:
        untouched = getattr(scheduler, "last_epoch", 0) <= 0
        if id(scheduler) in held or not untouched:
            continue
        if _rates(scheduler) == [float(rate) for rate in _bases(scheduler)]:
            continue
        first = _rates(scheduler)[0]
        what = (
            f"never stepped: it was built on this optimizer and set the rate to "
            f"{first:.3g}, and it is not among the schedulers that are stepped"
        )
        yield Finding(what, type(scheduler).__name__, "likely", "9.5")


def judge_so_far(
    optimizer: Optimizer, units: Sequence[Any], plan: Plan
) -> Iterator[Finding]:
    """Yield what the steps that were made before tell about the loop.

    Args:
        optimizer: the optimizer in use.
        units: its schedulers.
        plan: how the loop says that it steps.
    """
    updates = _updates(optimizer)
    for unit in units:
        name, done = type(unit).__name__, max(getattr(unit, "last_epoch", 0), 0)
        stepped = updates or int(getattr(optimizer, "_opt_called", False))
        if done == 0 and stepped and getattr(optimizer, "_opt_called", False):
            if plan.stepped == "epoch" and updates <= (plan.steps_per_epoch or 0):
                continue
            how_often = f"{updates:,} updates" if updates > 1 else "updates"
            what = (
                f"never stepped: the optimizer has made {how_often}, and the scheduler "
                "was not stepped since it was built"
            )
            yield Finding(what, name, "likely", "5.2")
        elif plan.stepped != "batch" and updates and done > 1.5 * updates + 2:
            what = (
                f"wrong unit: the scheduler was stepped {done:,} times in {updates:,} "
                f"updates, about {done / updates:.2g} times an update"
            )
            yield Finding(what, name, "likely", "5.2")
    yield from _moved_by_others(optimizer, units)


def _moved_by_others(optimizer: Optimizer, units: Sequence[Any]) -> Iterator[Finding]:
    now = [float(group["lr"]) for group in optimizer.param_groups]
    for unit in units:
        last = _rates(unit)
        if len(last) != len(now) or any(map(math.isclose, last, now)):
            return
    last = _rates(units[-1])
    what = (
        f"jump: the optimizer's rate is {now[0]:.3g}, and its scheduler last set "
        f"{last[0]:.3g}: something else changed it, such as a scheduler built after "
        "a checkpoint was loaded"
    )
    yield Finding(what, type(units[-1]).__name__, "likely", "5.2")


def _updates(optimizer: Optimizer) -> int:
    """Return how many steps the optimizer's state tells of; 0 where it tells nothing."""
    counts = [
        float(state["step"])
        for state in optimizer.state.values()
        if isinstance(state, dict)
        and isinstance(state.get("step"), int | float | torch.Tensor)
    ]
    return int(max(counts, default=0))


def _rates(scheduler: Any) -> list[float]:
    return [float(rate) for rate in getattr(scheduler, "_last_lr", ())]


def _bases(scheduler: Any) -> Sequence[Any]:
    return getattr(scheduler, "base_lrs", _rates(scheduler))


def _held(scheduler: Any, depth: int = 3) -> Iterator[Any]:
    """Yield a scheduler, those inside it, and those that a wrapper holds."""
    yield from parts(scheduler)
    if depth:
        for value in list(vars(scheduler).values()):
            for each in value if isinstance(value, list | tuple) else [value]:
                if hasattr(each, "step") and not isinstance(each, Optimizer):
                    yield from _held(each, depth - 1)
