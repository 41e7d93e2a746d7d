"""How long a schedule is meant to run, against how often it is stepped."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from torch.optim import lr_scheduler as torch_schedulers

from labkit.probe.finding import Finding
from labkit.probe.schedule_copy import Plan


@dataclass(frozen=True)
class Horizon:
    """A length in a scheduler's arguments, in scheduler calls.

    Attributes:
        name: how the argument is written, such as "T_max=30".
        calls: after how many calls since the scheduler was built it's reached.
        ends: whether the schedule is over then, and not only begins to act.
        returns: whether stepping on takes the rate back up, or leaves it at zero.
    """

    name: str
    calls: int
    ends: bool
    returns: bool = False


def horizons(scheduler: Any) -> Iterator[Horizon]:
    """Yield the lengths that a scheduler of torch was given; none for a function.

    Args:
        scheduler: any scheduler; what is not one of torch's has none.

    Example:
        >>> [h.name for h in horizons(StepLR(optimizer, step_size=30))]
        ['step_size=30']
    """
    t = torch_schedulers
    if isinstance(scheduler, t.CosineAnnealingLR):
        yield Horizon(f"T_max={scheduler.T_max}", scheduler.T_max, True, True)
    elif isinstance(scheduler, t.OneCycleLR):
        total = scheduler.total_steps
        yield Horizon(f"total_steps={total}", total, True)
    elif isinstance(scheduler, t.LinearLR | t.PolynomialLR | t.ConstantLR):
        total = scheduler.total_iters
        falls = isinstance(scheduler, t.PolynomialLR) or (
            isinstance(scheduler, t.LinearLR)
            and scheduler.end_factor < scheduler.start_factor
        )
        to_zero = falls and getattr(scheduler, "end_factor", 0) == 0
        yield Horizon(f"total_iters={total}", total, falls, to_zero)
    elif isinstance(scheduler, t.StepLR):
        yield Horizon(f"step_size={scheduler.step_size}", scheduler.step_size, False)
    elif isinstance(scheduler, t.MultiStepLR) and scheduler.milestones:
        milestones = sorted(scheduler.milestones)
        name = f"milestones={milestones}"
        yield Horizon(name, milestones[0], False)
    elif isinstance(scheduler, t.CosineAnnealingWarmRestarts):
        yield Horizon(f"T_0={scheduler.T_0}", scheduler.T_0, False)
    elif isinstance(scheduler, t.CyclicLR):
        up = round(scheduler.total_size * scheduler.step_ratio)
        yield Horizon(f"step_size_up={up}", up, False)
    elif isinstance(scheduler, t.SequentialLR) and scheduler._milestones:
        milestones = scheduler._milestones
        yield Horizon(f"milestones={milestones}", milestones[0], False)
        for inner in horizons(scheduler._schedulers[-1]):
            name = f"{inner.name} after step {milestones[-1]}"
            calls = milestones[-1] + inner.calls
            yield Horizon(name, calls, inner.ends, inner.returns)


def judge_horizons(unit: Any, plan: Plan) -> Finding | None:
    """Return the finding about a scheduler whose length doesn't fit the run.

    Args:
        unit: the scheduler, as it is before the run.
        plan: the run.

    Returns:
        A finding of a wrong unit, or None.
    """
    calls = max(unit.last_epoch, 0) + plan.total_calls
    kind = type(unit).__name__
    for horizon in horizons(unit):
        counted = _counted(horizon, plan, calls)
        if counted:
            what = (
                f"wrong unit: {horizon.name} is the number of {counted} in the run, "
                f"and the scheduler is stepped {times(calls)}, {_when(plan)}"
            )
            return Finding(what, kind, "certain", "5.2")
        if horizon.calls >= 2 * calls:
            does = "ends after" if horizon.ends else "first acts at"
            part = f"{100 * calls / horizon.calls:.2g} % of that"
            what = (
                f"wrong unit: with {horizon.name} the schedule {does} call "
                f"{horizon.calls:,}, and the run steps it {times(calls)}, {part}: "
                "is it counted in steps, and stepped once an epoch?"
            )
            return Finding(what, kind, "likely", "5.2")
        if horizon.returns and calls >= 2 * horizon.calls:
            what = (
                f"wrong unit: with {horizon.name} the schedule ends after call "
                f"{horizon.calls:,}, and the run steps it {times(calls)}, "
                f"{calls / horizon.calls:.3g} times as often: is it counted in "
                "epochs or optimizer steps, and stepped at each step or micro-batch?"
            )
            return Finding(what, kind, "likely", "5.2")
    return _all_drops_at_once(unit, calls) or _cut_warm_up(unit)


def times(count: int) -> str:
    """Return a count in words: "once", "2 times"."""
    return "once" if count == 1 else f"{count:,} times"


def _counted(horizon: Horizon, plan: Plan, calls: int) -> str | None:
    """Return what the length counts, where that is known and is not the calls."""
    if not horizon.ends or horizon.calls == calls:
        return None
    counts = {"optimizer steps": plan.steps}
    if plan.steps_per_epoch is not None:
        counts["epochs"] = plan.steps // plan.steps_per_epoch
    if plan.accumulate > 1:
        counts["micro-batches"] = plan.steps * plan.accumulate
    for name, count in counts.items():
        if horizon.calls == count and count != calls:
            return name
    return None


def _when(plan: Plan) -> str:
    return {
        "step": "once an optimizer step",
        "epoch": "once an epoch",
        "batch": "once a micro-batch",
    }[plan.stepped]


def _all_drops_at_once(unit: Any, calls: int) -> Finding | None:
    """Judge milestones that all fall into the first tenth of the run."""
    if not isinstance(unit, torch_schedulers.MultiStepLR) or not unit.milestones:
        return None
    last = max(unit.milestones)
    if calls < 10 * last:
        return None
    what = (
        f"wrong unit: the last milestone is call {last}, and the run steps the "
        f"scheduler {times(calls)}: are the milestones epochs, and is it stepped at "
        "each step?"
    )
    return Finding(what, type(unit).__name__, "likely", "5.2")


def _cut_warm_up(unit: Any) -> Finding | None:
    """Judge warm-ups in a sequence that the next part interrupts on their way up."""
    if not isinstance(unit, torch_schedulers.SequentialLR):
        return None
    begins = [0, *unit._milestones]
    for part, begin, end in zip(unit._schedulers, begins, begins[1:], strict=False):
        if (
            isinstance(part, torch_schedulers.LinearLR)
            and part.start_factor < part.end_factor
            and part.total_iters >= 2 * (end - begin)
        ):
            what = (
                f"jump: the warm-up of total_iters={part.total_iters} is cut off by "
                f"the milestone at {end}, and the rate jumps there"
            )
            return Finding(what, "SequentialLR", "certain", "5.2")
    return None
