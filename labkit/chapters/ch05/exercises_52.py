"""The exercise of part 5.2: warm-up and cosine as one function of the step."""

import math
from collections.abc import Callable
from itertools import count, pairwise

import torch
from torch.optim.lr_scheduler import LambdaLR

from labkit.lesson.exercise import Exercise, Wrong, given

Answer = Callable[..., float]
RUNS = ((5, 25, 0.1), (10, 100, 0.0), (1, 12, 0.25))  # warm-up, total, floor


def close(one: float, other: float) -> bool:
    """Equal, with room for an answer in float32."""
    return math.isclose(one, other, rel_tol=1e-5, abs_tol=1e-5)


def factors(answer: Answer, steps: range, *settings: float) -> list[float]:
    """What the answer gives for each step, as plain numbers."""
    got = [given(answer, step, *settings) for step in steps]
    for step, factor in zip(steps, got, strict=True):
        assert isinstance(factor, int | float | torch.Tensor), (
            f"a number is wanted for step {step}, and a {type(factor).__name__} came out"
        )
    return [float(factor) for factor in got]


def starts_above_zero(answer: Answer) -> None:
    """the first optimizer step is not wasted: its factor is 1 / warmup"""
    for warmup, total, floor in RUNS:
        first = factors(answer, range(1), warmup, total, floor)[0]
        assert first != 0, (
            f"with warmup={warmup} the first factor is 0, so that the first optimizer "
            "step moves nothing: which number does the first of the steps have?"
        )
        nudge = (
            "the climb has `warmup` equal steps, and the last of them is the peak"
            if first < 1 / warmup
            else "the floor is where the cosine ends, not a part of the climb"
        )
        assert close(first, 1 / warmup), (
            f"with warmup={warmup} and floor={floor} the first factor is {first:.3g}, and "
            f"1/{warmup} is wanted: {nudge}"
        )


def climbs_to_the_peak(answer: Answer) -> None:
    """the factors rise evenly and reach 1 at step warmup - 1"""
    for warmup, total, floor in RUNS:
        got = factors(answer, range(warmup), warmup, total, floor)
        for step, factor in enumerate(got):
            assert close(factor, (step + 1) / warmup), (
                f"with warmup={warmup} and floor={floor} the factor at step {step} is "
                f"{factor:.3g}, and {(step + 1) / warmup:.3g} is wanted: does the climb "
                f"end with exactly 1 at step {warmup - 1}?"
            )


def falls_without_a_jump(answer: Answer) -> None:
    """after the peak the factors fall smoothly"""
    for warmup, total, floor in RUNS:
        got = factors(answer, range(warmup - 1, total), warmup, total, floor)
        most = math.pi / 2 / (total - warmup)  # the steepest step of half a cosine
        for step, (now, then) in enumerate(pairwise(got), start=warmup):
            assert -1e-5 <= now - then <= 1.05 * most, (
                f"with warmup={warmup} and total={total} the factor goes from {now:.3g} "
                f"to {then:.3g} at step {step}: where does your cosine begin to count?"
            )


def ends_at_the_floor(answer: Answer) -> None:
    """half a cosine leads to the floor, reached at step total - 1"""
    for warmup, total, floor in RUNS:
        got = factors(answer, range(warmup - 1, total), warmup, total, floor)
        nudge = (
            "what keeps it above the floor?"
            if got[-1] < floor
            else "how far has the cosine come by then?"
        )
        assert close(got[-1], floor), (
            f"with total={total} and floor={floor} the factor at the last step, "
            f"{total - 1}, is {got[-1]:.3g}: {nudge}"
        )
        for n, factor in enumerate(got):
            wave = math.cos(math.pi * n / (total - warmup))
            wanted = floor + (1 - floor) * (1 + wave) / 2
            assert close(factor, wanted), (
                f"with warmup={warmup}, total={total} and floor={floor} the factor at "
                f"step {warmup - 1 + n} is {factor:.3g}, and a cosine gives {wanted:.3g}"
            )


def stays_at_the_floor(answer: Answer) -> None:
    """from step total on the factor stays at the floor"""
    for warmup, total, floor in RUNS:
        for step in (total, total + 7, 2 * total - warmup, 5 * total):
            after = factors(answer, range(step, step + 1), warmup, total, floor)[0]
            assert close(after, floor), (
                f"with total={total} and floor={floor} the factor at step {step} is "
                f"{after:.3g}: a cosine that goes on rises again"
            )


def does_without_warm_up(answer: Answer) -> None:
    """with warmup=0 the run begins at the peak, and still ends at the floor"""
    first, *_, last = factors(answer, range(20), 0, 20, 0.1)
    assert close(first, 1), (
        f"with warmup=0 the first factor is {first:.3g}, and 1 is wanted: without a "
        "warm-up the first step has the peak"
    )
    assert close(last, 0.1), (
        f"with warmup=0 and floor=0.1 the last factor is {last:.3g}"
    )


def depends_on_the_step_alone(answer: Answer) -> None:
    """a resumed run goes on where it was: the factor depends on the step alone"""
    forward = factors(answer, range(20), 5, 20, 0.1)
    resumed = factors(answer, range(12, 20), 5, 20, 0.1)
    for step, once, again in zip(range(12, 20), forward[12:], resumed, strict=True):
        assert once == again, (
            f"step {step} had the factor {once:.3g} in one run, and {again:.3g} in a run "
            "resumed at step 12: what does the answer remember from call to call?"
        )


def drives_a_scheduler(answer: Answer) -> None:
    """LambdaLR takes it: the rate climbs to the optimizer's own and goes to the floor"""
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.4)
    scheduler = LambdaLR(optimizer, lambda step: float(given(answer, step, 4, 16, 0.5)))
    rates = []
    for _ in range(20):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    seen = rates[0], max(rates), rates[-1]
    assert all(map(close, seen, (0.1, 0.4, 0.2))), (
        "in LambdaLR with lr=0.4, warmup=4, total=16 and floor=0.5 the first, highest and "
        f"last rates are {', '.join(f'{rate:.3g}' for rate in seen)}; 0.1, 0.4 and 0.2 "
        "are wanted: LambdaLR multiplies the optimizer's rate by your factor"
    )


def warmup_cosine(step: int, warmup: int, total: int, floor: float = 0.0) -> float:
    warmup = max(warmup, 1)
    if step < warmup:
        return (step + 1) / warmup
    done = min((step - warmup + 1) / (total - warmup), 1.0)
    return floor + (1 - floor) * (1 + math.cos(math.pi * done)) / 2


def with_interpolation(step: int, warmup: int, total: int, floor: float = 0.0) -> float:
    last_of_climb = max(warmup - 1, 0)
    if step <= last_of_climb:
        return (step + 1) / (last_of_climb + 1)
    if step >= total - 1:
        return floor
    angle = torch.tensor((step - last_of_climb) / (total - 1 - last_of_climb)).double()
    return torch.lerp(
        torch.tensor(floor).double(),
        torch.tensor(1.0).double(),
        torch.cos(angle * math.pi / 2) ** 2,
    ).item()


def from_zero(step: int, warmup: int, total: int, floor: float = 0.0) -> float:
    if step < warmup:
        return step / warmup
    return warmup_cosine(step, warmup, total, floor)


def peak_too_late(step: int, warmup: int, total: int, floor: float = 0.0) -> float:
    if step < warmup:
        return (step + 1) / (warmup + 1)
    return warmup_cosine(step, warmup, total, floor)


def floor_on_top(step: int, warmup: int, total: int, floor: float = 0.0) -> float:
    return floor + warmup_cosine(step, warmup, total, 0.0)


def cosine_too_late(step: int, warmup: int, total: int, floor: float = 0.0) -> float:
    warmup = max(warmup, 1)
    if step < warmup:
        return (step + 1) / warmup
    done = min((step - warmup) / (total - warmup), 1.0)
    return floor + (1 - floor) * (1 + math.cos(math.pi * done)) / 2


def cosine_from_step_0(step: int, warmup: int, total: int, floor: float = 0.0) -> float:
    if step < max(warmup, 1):
        return (step + 1) / max(warmup, 1)
    wave = math.cos(math.pi * min(step / (total - 1), 1))
    return floor + (1 - floor) * (1 + wave) / 2


def floor_left_out(step: int, warmup: int, total: int, floor: float = 0.0) -> float:
    return warmup_cosine(step, warmup, total, 0.0)


def rising_again(step: int, warmup: int, total: int, floor: float = 0.0) -> float:
    warmup = max(warmup, 1)
    if step < warmup:
        return (step + 1) / warmup
    done = (step - warmup + 1) / (total - warmup)
    return floor + (1 - floor) * (1 + math.cos(math.pi * done)) / 2


def needs_a_warm_up(step: int, warmup: int, total: int, floor: float = 0.0) -> float:
    if step < warmup:
        return (step + 1) / warmup
    done = min((step - warmup + 1) / (total - warmup), 1.0)
    return floor + (1 - floor) * (1 + math.cos(math.pi * done)) / 2


def counting() -> Answer:
    """An answer that counts its calls, as a class of one's own often does."""
    calls: dict[tuple[float, ...], count[int]] = {}

    def warmup_cosine_counted(
        step: int, warmup: int, total: int, floor: float = 0.0
    ) -> float:
        settings = (warmup, total, floor)
        if step == 0 or settings not in calls:
            calls[settings] = count()
        return warmup_cosine(next(calls[settings]), *settings)

    return warmup_cosine_counted


EXERCISES: list[Exercise] = [
    Exercise(
        id="5.2-warmup-cosine",
        title="Warm-up and cosine in one function",
        minutes=10,
        difficulty="medium",
        deliver="the factor of the peak rate for an optimizer step, a function of the "
        "step alone: an even climb from 1/warmup to 1, half a cosine to the floor, and "
        "the floor from then on",
        reference=warmup_cosine,
        tests=(
            starts_above_zero,
            climbs_to_the_peak,
            depends_on_the_step_alone,
            falls_without_a_jump,
            ends_at_the_floor,
            stays_at_the_floor,
            does_without_warm_up,
            drives_a_scheduler,
        ),
        hints=(
            "Between which two steps does the cosine run, and how many steps are that?",
            "The climb ends with 1 at step warmup - 1. Let `done` go from 0 there to 1 at "
            "step total - 1; (1 + cos(pi * done)) / 2 then goes from 1 to 0.",
            "`min(done, 1)` keeps the end; `max(warmup, 1)` at the top makes warmup=0 a "
            "climb of one step, which is the peak itself.",
        ),
        why="`done` says how far the fall has come, from 0 at the peak to 1 at the last "
        "step, and `min` holds it there: a cosine that goes on would rise again. The "
        "function keeps no count of its own, so that a scheduler whose `last_epoch` is "
        "loaded from a checkpoint goes on exactly where it was.",
        wrong=(
            Wrong(from_zero, "the first optimizer step moves nothing"),
            Wrong(peak_too_late, "the climb has `warmup` equal steps"),
            Wrong(floor_on_top, "not a part of the climb"),
            Wrong(counting(), "remember from call to call"),
            Wrong(cosine_from_step_0, "where does your cosine begin to count"),
            Wrong(cosine_too_late, "how far has the cosine come by then"),
            Wrong(floor_left_out, "what keeps it above the floor"),
            Wrong(rising_again, "a cosine that goes on rises again"),
            Wrong(needs_a_warm_up, "without a warm-up the first step has the peak"),
        ),
        variants=(with_interpolation,),
    )
]
