"""The exercises of part 2.3."""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from labkit.chapters.ch02 import module_answers as answers
from labkit.lesson.exercise import Exercise, Wrong, given

MEAN, STD = torch.linspace(1.0, 5.0, 64), torch.linspace(0.5, 2.0, 64)


def built(answer: Callable[..., Any]) -> nn.Module:
    """The learner's module for MEAN and STD, with the parts that the tests need."""
    model = given(answer, MEAN.clone(), STD.clone())
    assert isinstance(model, nn.Module), (
        f"an `nn.Module` is asked for, not this {type(model).__name__}"
    )
    # a stub has no parts yet: its forward says that it is not attempted
    if not list(model.children()):
        given(model, torch.ones(2, 64))
    linear = getattr(model, "linear", None)
    assert isinstance(linear, nn.Linear), (
        "the layer should be `self.linear`, an `nn.Linear`"
    )
    assert tuple(linear.weight.shape) == (10, 65), (
        f"`linear` should map 65 values to 10, its weight is "
        f"{tuple(linear.weight.shape)}"
    )
    assert linear.bias is None, "the ones take the bias's place: `bias=False`"
    return model


def run(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    """model(x); that it does not run is what the test is about, so it is told as such."""
    try:
        return given(model, x)
    except (RuntimeError, AssertionError) as error:
        # torch without CUDA answers `.cuda()` with an AssertionError; others are given's
        if isinstance(error, AssertionError) and "CUDA" not in str(error):
            raise
        line = str(error).strip().splitlines()[0]
        kind = f"{x.device.type}, {x.dtype}"
        raise AssertionError(f"for x on {kind}, `forward` raised: {line}") from None


def values(answer: Callable[..., Any]) -> None:
    """the values"""
    model = built(answer)
    for rows in (4, 1):
        x = torch.arange(64.0 * rows).view(rows, 64) % 17
        got = run(model, x)
        assert isinstance(got, torch.Tensor), (
            f"`forward` should return a tensor, not this {type(got).__name__}"
        )
        assert tuple(got.shape) == (rows, 10), (
            f"an x of {rows} rows should give the shape ({rows}, 10), not "
            f"{tuple(got.shape)}"
        )
        columns = torch.cat([(x - MEAN) / STD, torch.ones(rows, 1)], dim=1)
        want = F.linear(columns, model.get_parameter("linear.weight"))
        off = (got - want).abs().max().item()
        assert off < 1e-3, (
            f"the values are up to {off:.3g} off: `(x - mean) / std`, then the ones as "
            "the last column, then `linear`"
        )


def follow(answer: Callable[..., Any]) -> None:
    """that the constants follow `.to`"""
    model = built(answer).to(torch.float64)
    held = {
        name: value
        for name, value in tensors(model).items()
        if value.numel() in (64, 128)
    }
    left = [n for n, v in held.items() if v.dtype != torch.float64]
    assert not left, (
        f"after `.to(torch.float64)`, {' and '.join(sorted(left))} stayed float32: "
        "`.to` converts what is registered, and a plain attribute is not"
    )


def saved(answer: Callable[..., Any]) -> None:
    """that the `state_dict` brings the constants back"""
    stored = built(answer).state_dict()
    fresh = given(answer, torch.zeros(64), torch.ones(64))
    fresh.load_state_dict(stored)
    x = torch.arange(128.0).view(2, 64) % 17
    columns = torch.cat([(x - MEAN) / STD, torch.ones(2, 1)], dim=1)
    want = F.linear(columns, stored["linear.weight"])
    assert (run(fresh, x) - want).abs().max() < 1e-3, (
        "loaded into a module that was made with another mean and std, the "
        f"`state_dict` did not bring yours back; its keys are {list(stored)}"
    )


def made_in_forward(answer: Callable[..., Any]) -> None:
    """that the ones are made in `forward`"""
    kept = [n for n, v in tensors(built(answer)).items() if v.numel() not in (64, 128)]
    more = [name for name in kept if name != "linear.weight"]
    assert not more, (
        f"the module keeps {' and '.join(more)} beside the constants and `linear`: a new "
        "column of ones belongs to the batch, and `forward` can make it from `x`"
    )


def not_trained(answer: Callable[..., Any]) -> None:
    """that the optimizer gets `linear.weight` alone"""
    names = [name for name, _ in built(answer).named_parameters()]
    assert names == ["linear.weight"], (
        f"an optimizer would be given {', '.join(names)}; a constant is no "
        "parameter, since parameters are what an optimizer changes"
    )


def made_elsewhere(answer: Callable[..., Any]) -> None:
    """a module that was made on `meta`, a second device"""
    with torch.device("meta"):
        model = given(answer, MEAN.to("meta"), STD.to("meta"))
    got = run(model, torch.ones(3, 64, device="meta"))
    assert got.device.type == "meta", f"the result is on {got.device.type}"


def moved(answer: Callable[..., Any]) -> None:
    """a module that was made on the CPU and moved to `meta`"""
    model = built(answer).to("meta")
    got = run(model, torch.ones(3, 64, device="meta"))
    assert got.device.type == "meta", f"the result is on {got.device.type}"


def any_dtype(answer: Callable[..., Any]) -> None:
    """modules in float64 and bfloat16"""
    for dtype in (torch.float64, torch.bfloat16):
        model = built(answer).to(dtype)
        got = run(model, torch.ones(3, 64, dtype=dtype))
        assert got.dtype == dtype, (
            f"the module and x are {dtype}, the result is {got.dtype}"
        )


def tensors(model: nn.Module) -> dict[str, torch.Tensor]:
    """Every tensor that the module keeps itself, registered or not, by name."""
    kept = {k: v for k, v in vars(model).items() if isinstance(v, torch.Tensor)}
    return {**kept, **dict(model.named_buffers()), **dict(model.named_parameters())}


EXERCISES: list[Exercise] = [
    Exercise(
        id="2.3-module",
        title="A module that goes anywhere",
        minutes=8,
        difficulty="medium",
        deliver="a module `Standardized(mean, std)` that works on every device and in "
        "every floating dtype",
        reference=answers.Standardized,
        tests=(
            values,
            follow,
            saved,
            not_trained,
            made_in_forward,
            made_elsewhere,
            moved,
            any_dtype,
        ),
        hints=(
            "Which of the three does `.to` reach, without being trained: an attribute, "
            "a parameter, a buffer?",
            "`self.register_buffer(name, tensor)` keeps a constant that moves and is "
            "saved. In `forward` it is `self.name`.",
            "In `forward`, which tensor already has the right device and dtype for the "
            "ones?",
        ),
        why="A buffer is registered like a parameter and never given to the optimizer. "
        "`x.new_ones` asks the data, so `forward` names no device and no dtype; a "
        "device remembered in `__init__` would be wrong after the next `.to`.",
        wrong=(
            Wrong(answers.PlainAttributes, "stayed float32"),
            Wrong(answers.Parameters, "an optimizer would be given"),
            Wrong(answers.NotSaved, "did not bring yours back"),
            Wrong(
                answers.OnesOnTheCpu, "made on `meta`, a second device: for x on meta"
            ),
            Wrong(
                answers.OnesInFloat32, "for x on cpu, torch.bfloat16, `forward` raised"
            ),
            Wrong(answers.OnCuda, "for x on cpu, torch.float32, `forward` raised"),
            Wrong(
                answers.RemembersItsDevice,
                "made on the CPU and moved to `meta`: for x on meta",
            ),
            Wrong(answers.OnesKept, "the module keeps ones beside"),
            Wrong(answers.OnesFirst, "then the ones as the last column"),
        ),
        variants=(answers.OtherNames, answers.OneConstant),
    )
]
