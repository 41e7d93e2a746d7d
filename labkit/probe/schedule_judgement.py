"""What is wrong with a simulated schedule, and what is only worth knowing."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from torch.optim import Optimizer
from torch.optim import lr_scheduler as torch_schedulers
from torch.optim.swa_utils import SWALR

from labkit.probe import schedule_curve as curve
from labkit.probe.schedule_copy import Plan, Run, parts, simulate
from labkit.probe.schedule_findings import (
    Judgement,
    judge_overshoot,
    judge_stack,
    named,
)
from labkit.probe.schedule_horizon import judge_horizons, times

# these rise again by design
_CYCLES = (
    torch_schedulers.CosineAnnealingWarmRestarts,
    torch_schedulers.CyclicLR,
    SWALR,
)


def judge(
    optimizer: Optimizer, units: Sequence[Any], plan: Plan, run: Run
) -> Judgement:
    """Judge a run that was simulated.

    Args:
        optimizer: the optimizer, as it is before the run.
        units: its schedulers, as they are before the run, in the order of their steps.
        plan: the run's length and how often it steps them.
        run: the rates that came out.

    Returns:
        Findings, notes and marks.
    """
    judged = Judgement()
    bases = [_base(group) for group in optimizer.param_groups]
    _judge_stop(judged, units, plan, run)
    for unit in units:
        finding = judge_horizons(unit, plan)
        # an error says the same, and where
        if finding and not (run.raised and units[run.raised[0]] is unit):
            judged.findings.append(finding)
    alone = [
        simulate(optimizer, units, plan, only=place).rates
        for place in range(len(units))
        if len(units) > 1
    ]
    judge_stack(judged, units, alone)
    spiked = judge_overshoot(judged, run, alone, bases)
    for groups, rates in _alike(run.rates):
        own = [rates_alone[groups[0]] for rates_alone in alone]
        where = named(groups, len(run.rates))
        base = bases[groups[0]]
        if not rates or not _judge_values(
            judged, rates, base, where, len(groups) == len(run.rates)
        ):
            continue
        _judge_first_step(judged, rates, plan, where)
        _judge_tail(judged, rates, plan, where)
        if not spiked:
            _judge_rises(judged, rates, own, units, plan, where)
        if curve.never_arrives(rates, base) and not judged.findings:
            judged.find(
                f"wrong unit: the rate still rises at the end and has reached "
                f"{100 * rates[-1] / base:.2g} % of {base:.3g}: is the warm-up counted "
                "in steps, and stepped once an epoch?",
                where,
                "likely",
            )
    return judged


def _base(group: dict[str, Any]) -> float:
    return float(group.get("initial_lr", group["lr"]))


def _alike(
    rates: Sequence[Sequence[float]],
) -> list[tuple[list[int], Sequence[float]]]:
    """Return the groups whose rates have the same course, with the first one's rates."""
    courses: dict[bytes, list[int]] = {}
    for place, group in enumerate(rates):
        values = np.asarray(group)
        top = np.abs(values).max(initial=0.0)
        course = np.round(values / top, 9) if top else values
        courses.setdefault(course.tobytes(), []).append(place)
    return [(groups, rates[groups[0]]) for groups in courses.values()]


def _judge_stop(judged: Judgement, units: Sequence[Any], plan: Plan, run: Run) -> None:
    if run.raised is None:
        return
    place, call, error = run.raised
    said = " ".join(str(error).split())
    judged.find(
        f"wrong unit: call {call:,} of the scheduler raises {type(error).__name__} "
        f"({said}), and the run makes {plan.total_calls:,}"
        if isinstance(units[place], torch_schedulers.OneCycleLR)
        else f"the scheduler raises {type(error).__name__} at call {call:,} ({said})",
        type(units[place]).__name__,
        "certain",
        step=len(run.rates[0]) - 1,
    )


def _judge_values(
    judged: Judgement, rates: Sequence[float], base: float, where: str, every: bool
) -> bool:
    """Judge values that no course makes right; return whether the rest can be judged."""
    bad = next((t for t, r in enumerate(rates) if not math.isfinite(r) or r < 0), None)
    if bad is not None:
        what = (
            f"the rate is negative from step {bad:,} on ({rates[bad]:.3g}): the "
            "optimizer walks up the loss"
            if rates[bad] < 0
            else f"the rate is {rates[bad]} from step {bad:,} on"
        )
        judged.find(what, where, "certain", step=bad)
        return False
    if any(rates):
        return True
    if base == 0 and not every:
        judged.notes.append(f"The {where} is 0 throughout, as it was given.")
    else:
        judged.find(
            f"permanent zero: the rate is 0 at every step, and {base:.3g} was given",
            where,
            "certain",
            "9.5",
            0,
        )
    return False


def _judge_first_step(
    judged: Judgement, rates: Sequence[float], plan: Plan, where: str
) -> None:
    if rates[0] != 0:
        return
    if plan.stepped == "epoch":
        wasted = next(step for step, rate in enumerate(rates) if rate)
        judged.find(
            f"zero first step: stepped once an epoch, the rate is 0 for the first "
            f"{wasted:,} updates, and they change nothing",
            where,
            "certain",
            step=0,
        )
    else:
        judged.notes.append(
            "The rate of the first step is 0: that update changes nothing. Stepped "
            "once an epoch, a whole epoch would."
        )


def _judge_tail(
    judged: Judgement, rates: Sequence[float], plan: Plan, where: str
) -> None:
    tail = curve.zero_tail(rates)
    a_call = (plan.steps_per_epoch or 1) if plan.stepped == "epoch" else 1
    exact = rates[-1] == 0
    if tail <= max(a_call, (0.02 if exact else 0.2) * len(rates)):
        return
    start = len(rates) - tail
    judged.find(
        f"permanent zero: the rate is {'' if exact else 'as good as '}0 from step "
        f"{start:,} to the end, {tail:,} of {len(rates):,} steps",
        where,
        "certain" if exact else "likely",
        step=start,
    )


def _judge_rises(
    judged: Judgement,
    rates: Sequence[float],
    alone: Sequence[Sequence[float]],
    units: Sequence[Any],
    plan: Plan,
    where: str,
) -> None:
    """Judge rises; `alone` are the rates of this group that each unit makes by itself."""
    found = [
        rise
        for rise in curve.rises(rates)
        if not any(curve.warms_up(own, rise) for own in alone)
    ]
    faults = [rise for rise in found if not _meant(rise, units, plan)]
    if len(faults) < len(found):
        judged.notes.append(
            f"The rate rises again after it fell, {times(len(found) - len(faults))}: "
            "that schedule is made to."
        )
    if not faults:
        return
    first = faults[0]
    jumps = first.at_once and first.high >= 2 * first.low
    own = all(type(unit).__module__ == torch_schedulers.__name__ for unit in units)
    known = own and not any(isinstance(u, torch_schedulers.LambdaLR) for u in units)
    judged.find(
        f"{'jump' if jumps else 'rise after decay'}: the rate falls to {first.low:.3g} "
        f"at step {first.start:,} and rises to {first.high:.3g} by step {first.end:,}"
        + (f", the first of {len(faults):,} such rises" if len(faults) > 1 else ""),
        where,
        "likely" if known else "worth a look",
        step=first.start,
    )


def _meant(rise: curve.Rise, units: Sequence[Any], plan: Plan) -> bool:
    """Return whether a rise is what its scheduler was built to do."""
    inner = [part for unit in units for part in parts(unit)]
    if any(isinstance(part, _CYCLES) for part in inner):
        return True
    for part in inner:
        if isinstance(part, torch_schedulers.SequentialLR):
            passed = max(part.last_epoch, 0)
            first = passed + plan.calls_before(rise.start)
            last = passed + plan.calls_before(rise.start + 1)
            if any(first <= milestone <= last for milestone in part._milestones):
                return True
    # a restart by one's own function: at once, and up to where it fell from
    own = [
        part
        for part in inner
        if isinstance(part, torch_schedulers.LambdaLR)
        or type(part).__module__ != torch_schedulers.__name__
    ]
    return bool(own) and rise.at_once and 0.3 < rise.high / rise.before <= 1.01
