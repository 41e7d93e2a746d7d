"""The learning rates of a run before it is started: `preview_schedule`."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from torch.optim import Optimizer
from torch.optim.lr_scheduler import ReduceLROnPlateau

from labkit.probe.finding import Finding
from labkit.probe.rng import kept_rng
from labkit.probe.schedule_arguments import (
    check_metrics,
    check_source,
    checked_pair,
    checked_plan,
    checked_schedulers,
    like_schedulers,
)
from labkit.probe.schedule_copy import Plan, flat, simulate
from labkit.probe.schedule_direction import wrong_direction
from labkit.probe.schedule_findings import Judgement
from labkit.probe.schedule_judgement import judge
from labkit.probe.schedule_live import (
    existing_schedulers,
    judge_so_far,
    left_out,
    noting_built,
)
from labkit.probe.schedule_preview import SchedulePreview


def preview_schedule(
    source: Callable[[], Any] | Optimizer,
    *schedulers_or_steps: Any,
    steps: int | None = None,
    stepped: str = "step",
    steps_per_epoch: int | None = None,
    accumulate: int = 1,
    metrics: Sequence[float] | None = None,
) -> SchedulePreview:
    """Show the learning rate of every step of a run, and what is wrong with it.

    There are two ways to call it; in both, `steps` may stand last without its name:

    - `preview_schedule(make, 1000)`: `make()` builds and returns an optimizer and its
      scheduler, or a list of its schedulers, as `(optimizer, scheduler)`;
    - `preview_schedule(optimizer, scheduler, 1000)`: those of a loop, fresh or in
      use. Several schedulers are given in the order in which the loop steps them. The
      preview then goes on from where they are.

    It steps copies, whose parameters are single numbers: what is given stays as it
    is, and no optimizer is run. Functions given to a scheduler are called, and not
    copied: what such a function changes outside itself stays changed.

    Found are: a jump, a rise after a decay, a rate that stays at zero or turns
    negative, a scheduler that is never stepped, one whose length is counted in another
    unit than it is stepped in, schedulers that undo each other, and a
    ReduceLROnPlateau that is fed a metric of the wrong direction. Restarts and cycles
    by design, and a first step of zero, are notes, and no findings; stepped once an
    epoch, a first step of zero is a finding. The lengths are judged against the whole
    run: with `steps` of a small part of it a long schedule looks like a wrong unit.

    Args:
        source: `make`, or the optimizer.
        schedulers_or_steps: the schedulers of that optimizer, then perhaps `steps`.
        steps: optimizer steps in the run, from now on.
        stepped: when the loop calls `scheduler.step()`: after each optimizer "step",
            each "epoch" (needs `steps_per_epoch`), or each micro-"batch" (of which
            `accumulate` make one optimizer step).
        steps_per_epoch: optimizer steps in an epoch; where it's given, a length that
            counts the other unit is recognised by its number.
        accumulate: micro-batches in one optimizer step.
        metrics: what each call of a ReduceLROnPlateau gets, one number a call; without
            them it's taken never to act.

    Returns:
        A `SchedulePreview`: `rates` by parameter group and step, `findings`, `notes`,
        and `plot()`.

    Raises:
        TypeError: an argument of another kind, or a `make` that returns something else.
        ValueError: no steps, too few metrics, or schedulers that cannot be copied.

    Example:
        >>> def make():
        ...     optimizer = torch.optim.SGD([torch.zeros(1)], lr=0.1)
        ...     return optimizer, CosineAnnealingLR(optimizer, T_max=100)
        >>> preview_schedule(make, 100)
        <SchedulePreview: CosineAnnealingLR over 100 steps, rate 0.1 first, 0.1 at most,
        2.47e-05 last; no findings>
    """
    given = list(schedulers_or_steps)
    if steps is None and given and not like_schedulers(given[-1]):
        steps = given.pop()
    plan = checked_plan(steps, stepped, steps_per_epoch, accumulate, metrics)
    check_source(source, given)
    with kept_rng():
        if isinstance(source, Optimizer):
            optimizer, schedulers = source, checked_schedulers(given, "the schedulers")
            others = existing_schedulers(optimizer, schedulers)
        else:
            with noting_built() as built:
                optimizer, schedulers = checked_pair(source())
            others = [one for one in built if _drives(one, optimizer)]
        units = [one for one in flat(schedulers) if _drives(one, optimizer)]
        check_metrics(plan, units)
        run = simulate(optimizer, units, plan)
        judged = judge(optimizer, units, plan, run) if units else Judgement()
    judged.findings[:0] = [
        *_of_another(flat(schedulers), units),
        *left_out(others, schedulers),
        *(judge_so_far(optimizer, units, plan) if units else ()),
    ]
    _judge_plateaus(judged, units, plan)
    return SchedulePreview(
        rates=run.rates,
        steps=plan.steps,
        scheduler_steps=plan.total_calls,
        schedulers=tuple(type(one).__name__ for one in schedulers),
        findings=tuple(dict.fromkeys(judged.findings)),
        notes=tuple(dict.fromkeys(judged.notes)),
        marks=tuple(sorted(set(judged.marks))),
    )


def _drives(scheduler: Any, optimizer: Optimizer) -> bool:
    return getattr(scheduler, "optimizer", None) is optimizer


def _of_another(flat_schedulers: list[Any], units: list[Any]) -> Iterator[Finding]:
    for scheduler in flat_schedulers:
        if not any(scheduler is unit for unit in units):
            what = (
                "the scheduler was built on another optimizer than the one given, "
                "and never changes this one's rate"
            )
            yield Finding(what, type(scheduler).__name__, "certain", "5.2")


def _judge_plateaus(judged: Judgement, units: list[Any], plan: Plan) -> None:
    for unit in units:
        if not isinstance(unit, ReduceLROnPlateau):
            continue
        if plan.metrics is None:
            judged.notes.append(
                "ReduceLROnPlateau acts on a metric, which was not given: it's taken "
                "never to act. Its patience counts calls: after "
                f"{unit.patience + 1:,} without an improvement it lowers the rate."
            )
        elif found := wrong_direction(unit, plan.metrics):
            judged.findings.append(found)
        epoch = plan.steps_per_epoch
        if plan.stepped != "epoch" and epoch is not None and unit.patience < epoch:
            what = (
                f"wrong unit: a patience of {unit.patience:,} counts calls, the "
                f"scheduler is stepped at each {plan.stepped}, and an epoch has "
                f"{epoch:,} steps"
            )
            judged.find(what, "ReduceLROnPlateau", "likely")
