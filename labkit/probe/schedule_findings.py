"""What a judged schedule collects, and what is wrong with schedulers that share one."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from torch.optim import lr_scheduler as torch_schedulers

from labkit.probe import schedule_curve as curve
from labkit.probe.finding import Finding
from labkit.probe.schedule_copy import Run, parts

OVERSHOOT = 1.5
"""A stack's rate is too high at this multiple of what its schedulers reach alone."""

# these compute the rate from its base, whatever another scheduler made of it
_OVERWRITE = (
    torch_schedulers.LambdaLR,
    torch_schedulers.OneCycleLR,
    torch_schedulers.CyclicLR,
    torch_schedulers.CosineAnnealingWarmRestarts,
)


@dataclass
class Judgement:
    """What was found, what is only information, and the steps that a picture marks."""

    findings: list[Finding] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    marks: list[int] = field(default_factory=list)

    def find(
        self, what: str, where: str, sure: str, page: str = "5.2", step: int = -1
    ) -> None:
        """Add a finding, and the step at which it shows in the picture."""
        self.findings.append(Finding(what, where, sure, page))
        if step >= 0:
            self.marks.append(step)


def named(groups: list[int], count: int) -> str:
    """Return how parameter groups are called in a finding, of `count` that there are."""
    if len(groups) == count:
        return "learning rate"
    numbers = ", ".join(map(str, groups))
    return f"learning rate of parameter group{'s' * (len(groups) > 1)} {numbers}"


def judge_stack(judged: Judgement, units: Sequence[Any], alone: Sequence[Any]) -> None:
    """Judge schedulers of one optimizer that don't multiply what the others do."""
    acts = [any(curve.varies(rates) for rates in each if rates) for each in alone]
    for place, unit in enumerate(units):
        others = [
            type(other).__name__
            for at, (other, does) in enumerate(zip(units, acts, strict=False))
            if at != place and does
        ]
        if others and any(isinstance(part, _OVERWRITE) for part in parts(unit)):
            judged.find(
                f"{type(unit).__name__} sets the rate from its base at each call and "
                f"undoes what {' and '.join(others)} made of it: put one after the "
                "other with SequentialLR, or write both as one function",
                "schedulers of one optimizer",
                "certain",
                "9.5",
            )
            return


def judge_overshoot(
    judged: Judgement, run: Run, alone: Sequence[Any], bases: list[float]
) -> bool:
    """Judge the height of a stack's rate; return whether it overshoots."""
    if not alone:
        return False
    for group, rates in enumerate(run.rates):
        usual = max([bases[group], *(max(e[group], default=0.0) for e in alone)])
        top = max(rates, default=0.0)
        if usual > 0 and top > OVERSHOOT * usual:
            step = rates.index(top)
            judged.find(
                f"jump: the rate reaches {top:.3g} at step {step:,}, {top / usual:.2g} "
                f"times the {usual:.3g} that any of its schedulers reaches alone",
                named([group], len(run.rates)),
                "certain",
                "9.5",
                step,
            )
            return True
    return False
