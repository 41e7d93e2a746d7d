"""Exercise 3.3-safe-log: a logarithm whose gradient is right where it is not taken."""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from labkit.lesson.exercise import Exercise, Wrong, given

Answer = Callable[[Tensor], Tensor]


def leaf(*values: float) -> Tensor:
    """A float64 tensor that needs a gradient."""
    return torch.tensor(values, dtype=torch.float64, requires_grad=True)


def log_of(answer: Answer, x: Tensor) -> Tensor:
    got = given(answer, x)
    assert isinstance(got, Tensor), (
        f"a tensor is asked for, and a {type(got).__name__} came"
    )
    assert got.shape == x.shape, (
        f"x has the shape {tuple(x.shape)} and so has the result; {tuple(got.shape)} "
        "came"
    )
    assert got.dtype == x.dtype, (
        f"x is {x.dtype} and so is the result; {got.dtype} came"
    )
    return got


def values_above(answer: Answer) -> None:
    """the values where x is positive"""
    x = leaf(0.5, 1.0, 4.0)
    off = (log_of(answer, x) - x.log()).abs().max().item()
    assert off < 1e-12, (
        f"log(0.5), log(1) and log(4) are up to {off:.1g} off: a number added inside "
        "the logarithm moves every value, not only those near 0"
    )


def values_near_zero(answer: Answer) -> None:
    """the value at 1e-30, which is positive"""
    got = log_of(answer, leaf(1e-30, 2.0))[0].item()
    assert abs(got - math.log(1e-30)) < 1e-9, (
        f"log(1e-30) is {math.log(1e-30):.1f}, and {got:.1f} came: is the smallest "
        "number that you let through larger than that?"
    )


def values_below(answer: Answer) -> None:
    """the values at 0 and below"""
    got = log_of(answer, leaf(-3.0, -0.0, 0.0, 2.0))[:3]
    assert not got.isnan().any(), (
        "the value is NaN at 0 or below: NaN times 0 is NaN, so a product with a mask "
        "does not take it away"
    )
    assert bool((got == 0).all()), (
        f"at 0 and below the result is 0; at 0 came {got[2].item():.1f}, the logarithm "
        "of a limit"
    )


def gradient_above(answer: Answer) -> None:
    """the gradient where x is positive"""
    x = leaf(-1.0, 1e-30, 0.5, 4.0)
    y = log_of(answer, x)
    assert y.requires_grad, (
        "the result has no history: no gradient can reach x. Were the numbers taken "
        "out of the tensor?"
    )
    y.sum().backward()
    assert x.grad is not None, "the result has a history, but x is not in it"
    want = 1 / x.detach()[1:]
    assert torch.allclose(x.grad[1:], want, rtol=1e-9), (
        f"at 0.5 and 4 the slope is 2 and 0.25; "
        f"{', '.join(f'{g:.3g}' for g in x.grad[2:].tolist())} came"
    )


def gradient_below(answer: Answer) -> None:
    """the gradient at 0 and below"""
    x = leaf(-3.0, 0.0, 2.0)
    log_of(answer, x).sum().backward()
    assert x.grad is not None, "x got no gradient"
    assert not x.grad.isnan().any(), (
        "the gradient is NaN: the logarithm was still taken at 0, and its slope there, "
        "infinity, was multiplied by 0. What does the logarithm get to see?"
    )
    assert bool((x.grad[:2] == 0).all()), (
        f"at 0 and below the result does not depend on x, so the slope is 0; "
        f"{', '.join(f'{g:.3g}' for g in x.grad[:2].tolist())} came"
    )


def safe_log(x: Tensor) -> Tensor:
    positive = x > 0
    inside = torch.where(positive, x, 1.0)
    return torch.where(positive, inside.log(), 0.0)


def by_index(x: Tensor) -> Tensor:
    """Right, written differently: the logarithm sees positive entries only."""
    positive = x > 0
    return torch.zeros_like(x).masked_scatter(positive, x[positive].log())


def by_fill(x: Tensor) -> Tensor:
    """Right, written differently: log(1) is 0, so one mask is enough."""
    return x.masked_fill(x <= 0, 1.0).log()


def mask_after(x: Tensor) -> Tensor:
    return torch.where(x > 0, x.log(), 0.0)


def epsilon(x: Tensor) -> Tensor:
    return torch.where(x > 0, (x.clamp(min=0) + 1e-8).log(), 0.0)


def high_limit(x: Tensor) -> Tensor:
    return torch.where(x > 0, x.clamp(min=1e-6).log(), 0.0)


def limit_only(x: Tensor) -> Tensor:
    return x.clamp(min=1e-300).log()


def product(x: Tensor) -> Tensor:
    return x.log() * (x > 0)


def one_by_one(x: Tensor) -> Tensor:
    logs = [math.log(v) if v > 0 else 0.0 for v in x.tolist()]
    return torch.tensor(logs, dtype=x.dtype)


def straight_through(x: Tensor) -> Tensor:
    value = torch.where(x > 0, x.log(), 0.0).detach()
    return x + (value - x).detach()


def leaks_below(x: Tensor) -> Tensor:
    positive = x > 0
    inside = torch.where(positive, x, 1.0)
    return torch.where(positive, inside.log(), x - x.detach())


EXERCISE = Exercise(
    id="3.3-safe-log",
    title="A logarithm that is safe to train through",
    minutes=4,
    difficulty="easy",
    deliver="the logarithm where x is positive, 0 elsewhere; the gradient right in both "
    "places",
    reference=safe_log,
    tests=(
        values_above,
        values_near_zero,
        values_below,
        gradient_above,
        gradient_below,
    ),
    hints=(
        "Which numbers may the logarithm never get to see, and what could it be given "
        "in their place?",
        "`torch.where(x > 0, x, 1.0)` replaces them, and 1 is harmless: its logarithm "
        "is 0.",
        "The slope of the inner `where` is 0 for the replaced entries, so nothing flows "
        "back to them.",
    ),
    why="The inner `where` sends 0 to each `x` that it has replaced, whatever comes back, "
    "and the 1 keeps the logarithm's slope finite. The outer one sets the value. (Here "
    "`log(1)` is 0 already, so it could be left out; for a square root or a quotient it "
    "could not.)",
    wrong=(
        Wrong(mask_after, "the gradient is NaN"),
        Wrong(epsilon, "a number added inside"),
        Wrong(high_limit, "log(1e-30) is -69.1"),
        Wrong(limit_only, "the logarithm of a limit"),
        Wrong(product, "the value is NaN at 0 or below"),
        Wrong(one_by_one, "the result has no history"),
        Wrong(straight_through, "at 0.5 and 4 the slope is 2 and 0.25"),
        Wrong(leaks_below, "does not depend on x, so the slope is 0"),
    ),
    variants=(by_index, by_fill),
)
