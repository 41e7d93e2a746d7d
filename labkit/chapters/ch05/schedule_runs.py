"""A schedule and a loop that steps it: the learning rate of every optimizer step."""

import math
from collections.abc import Callable
from dataclasses import dataclass

PEAK = 0.1  # the optimizer's own learning rate
MICRO = 4  # micro-batches in one optimizer step, where the loop accumulates
FLAT, JUMP = 1e-9, 0.5  # of the peak: what counts as zero, and as a jump


def held(t: float) -> float:
    return 1.0


def cosine(t: float) -> float:
    """CosineAnnealingLR to 0, which goes on after its length."""
    return (1 + math.cos(math.pi * t)) / 2


def cosine_held(t: float) -> float:
    return cosine(min(t, 1.0))


def thirds(t: float) -> float:
    """StepLR with gamma 0.1 and a third of the length as step_size."""
    return 0.1 ** int(3 * t + 1e-9)


def linear(t: float) -> float:
    """LinearLR from 1 to 0."""
    return max(1 - t, 0.0)


def restarts(t: float) -> float:
    """CosineAnnealingWarmRestarts with its length as T_0."""
    return cosine(t % 1.0)


# after the warm-up: the factor of the peak at a share t of the length, t >= 0
AFTER: dict[str, Callable[[float], float]] = {
    "cosine, then hold": cosine_held,
    "CosineAnnealingLR": cosine,
    "LinearLR to 0": linear,
    "StepLR, ÷10 thrice": thirds,
    "WarmRestarts": restarts,
    "constant": held,
}
# the factor at the call n, from 0, of a warm-up of w calls
STARTS: dict[str, Callable[[int, int], float]] = {
    "(n + 1) / warm-up": lambda n, w: (n + 1) / w,
    "n / warm-up": lambda n, w: n / w,
}
STEPPED = ("each optimizer step", "each epoch", f"each of {MICRO} micro-batches")


@dataclass(frozen=True)
class Run:
    """A run of `steps` optimizer steps, and the schedule that it steps.

    `rates` are the learning rates that the optimizer steps use, `plan` those by the
    scheduler's own calls, from 0 to the later of its length and the run's last call;
    `calls` is how often the run calls the scheduler, `length` the calls it was made for.
    """

    steps: int
    steps_per_epoch: int
    calls: int
    length: int
    rates: tuple[float, ...]
    plan: tuple[float, ...]

    @staticmethod
    def is_zero(rate: float) -> bool:
        return rate < FLAT * PEAK

    @property
    def wasted(self) -> int:
        """Optimizer steps at a rate of zero."""
        return sum(map(self.is_zero, self.rates))

    @property
    def jumps(self) -> list[int]:
        """Steps whose rate is more than half the peak away from the step before."""
        return [
            n
            for n in range(1, self.steps)
            if abs(self.rates[n] - self.rates[n - 1]) > JUMP * PEAK
        ]

    @property
    def turns(self) -> int | None:
        """The first step after the highest rate whose next one has a higher rate."""
        top = self.rates.index(max(self.rates))
        for n in range(top, self.steps - 1):
            if self.rates[n + 1] > self.rates[n] + FLAT * PEAK:
                return n
        return None


def run(
    after: str,
    start: str,
    warmup: int,
    length: int,
    epochs: int,
    steps_per_epoch: int,
    stepped: str,
) -> Run:
    """The learning rate of every optimizer step.

    `after` and `start` are keys of AFTER and STARTS, `stepped` is one of STEPPED;
    `warmup` and `length` are counted in calls of the scheduler, and the length holds the
    warm-up, as long as it has room for it.
    """
    steps = epochs * steps_per_epoch
    made = {  # calls made before the optimizer step n, and in the whole run
        STEPPED[0]: lambda n: n,
        STEPPED[1]: lambda n: n // steps_per_epoch,
        STEPPED[2]: lambda n: n * MICRO,
    }[stepped]
    calls = made(steps)

    def rate(call: int) -> float:
        if call < warmup:
            return PEAK * STARTS[start](call, warmup)
        rest = max(length - warmup, 1)
        return PEAK * AFTER[after]((call - warmup) / rest)

    # while micro-batches gather, the scheduler is stepped too: the optimizer step n of
    # such a loop comes after MICRO - 1 calls of its own
    early = MICRO - 1 if stepped == STEPPED[2] else 0
    rates = tuple(rate(made(n) + early) for n in range(steps))
    plan = tuple(rate(call) for call in range(max(length, calls) + 1))
    return Run(steps, steps_per_epoch, calls, length, rates, plan)
