"""Exercise 3.3-three-cuts: a model in which three ways back are cut, to be mended."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from labkit.lesson.exercise import Exercise, Wrong, given

Answer = Callable[..., Any]
NAMES = ("angle", "size", "hidden.weight", "hidden.bias", "out.weight", "out.bias")


class Cut(nn.Module):
    """The model of the page."""

    def __init__(self) -> None:
        super().__init__()
        self.angle = nn.Parameter(torch.tensor(0.5))
        self.size = nn.Parameter(torch.tensor(2.0))
        self.hidden, self.out = nn.Linear(2, 3), nn.Linear(3, 1)

    def forward(self, x: Tensor) -> Tensor:
        c, s = self.angle.cos(), self.angle.sin()
        x = x @ torch.tensor([[c, -s], [s, c]]) * self.size.item()
        h = np.tanh(self.hidden(x).detach().numpy())
        return self.out(torch.from_numpy(h))


class Mended(Cut):
    def forward(self, x: Tensor) -> Tensor:
        c, s = self.angle.cos(), self.angle.sin()
        x = x @ torch.stack([c, -s, s, c]).view(2, 2) * self.size
        h = torch.tanh(self.hidden(x))
        return self.out(h)


def points() -> Tensor:
    return torch.randn(16, 2, generator=torch.Generator().manual_seed(0))


def built(answer: Answer) -> nn.Module:
    """The learner's model, with the weights that a `Cut` has after seed 0."""
    model = given(answer)
    assert isinstance(model, nn.Module), (
        f"an `nn.Module` is asked for, this is a {type(model).__name__}"
    )
    names = [name for name, _ in model.named_parameters()]
    assert sorted(names) == sorted(NAMES), (
        f"the parameters should keep their names, {', '.join(NAMES)}; yours has "
        f"{', '.join(names) or 'none'}"
    )
    torch.manual_seed(0)
    model.load_state_dict(Cut().state_dict())
    return model


def output(model: nn.Module, x: Tensor) -> Tensor:
    with warnings.catch_warnings():  # a cut that is still there may warn
        warnings.simplefilter("ignore")
        return given(model, x)


def gradients(model: nn.Module) -> dict[str, Tensor | None]:
    """The gradients after one backward of a loss that is not linear."""
    output(model, points()).square().sum().backward()
    return {name: p.grad for name, p in model.named_parameters()}


def values(answer: Answer) -> None:
    """the values of `forward`"""
    model = built(answer)
    got = output(model, points())
    cut = Cut()
    cut.load_state_dict(model.state_dict())
    want = output(cut, points())
    alike = isinstance(got, Tensor) and got.shape == want.shape
    assert alike, f"16 points give 16 results, a tensor of shape {tuple(want.shape)}"
    off = (got - want).abs().max().item()
    assert off < 1e-5, (
        f"the results are up to {off:.2g} off: only the gradient was to change"
    )


def without(answer: Answer, *names: str) -> list[str]:
    """Those of the names whose parameters get no gradient, or nothing but zeros."""
    found = gradients(built(answer))
    return [n for n in names if (g := found[n]) is None or not bool(g.any())]


def hidden(answer: Answer) -> None:
    """the gradient of `hidden`"""
    missing = without(answer, "hidden.weight", "hidden.bias")
    assert not missing, (
        f"{' and '.join(missing)} get no gradient: between `hidden` and the result the "
        "values leave torch, and a graph does not come back with them"
    )


def size(answer: Answer) -> None:
    """the gradient of `size`"""
    assert not without(answer, "size"), (
        "`size` gets no gradient: its number is used, and not the parameter"
    )


def angle(answer: Answer) -> None:
    """the gradient of `angle`"""
    assert not without(answer, "angle"), (
        "`angle` gets no gradient: the matrix is a new tensor that knows nothing of "
        "the `c` and `s` it was made from"
    )


def right(answer: Answer) -> None:
    """that each gradient is the right one"""
    got, want = gradients(built(answer)), gradients(built(Mended))
    for name in NAMES:
        mine, theirs = got[name], want[name]
        assert mine is not None, f"{name} gets no gradient"
        assert theirs is not None
        assert torch.allclose(mine, theirs, rtol=1e-3, atol=1e-5), (
            f"{name} gets a gradient, but not the right one: the first entry is "
            f"{mine.flatten()[0].item():.3g} instead of {theirs.flatten()[0].item():.3g}. "
            "Is the slope of every operation on the way in it?"
        )


# --- other answers, right and wrong ----------------------------------------------------


class WrittenOut(Cut):
    """Right, written differently: the rotation written out, no matrix."""

    def forward(self, x: Tensor) -> Tensor:
        c, s = torch.cos(self.angle), torch.sin(self.angle)
        a, b = x.unbind(dim=1)
        turned = torch.stack([a * c + b * s, b * c - a * s], dim=1)
        return self.out((self.hidden(self.size * turned)).tanh())


class NewLeaf(Mended):
    def forward(self, x: Tensor) -> Tensor:
        c, s = self.angle.cos(), self.angle.sin()
        turn = torch.tensor([[c, -s], [s, c]], requires_grad=True)
        return self.out(torch.tanh(self.hidden(x @ turn * self.size)))


class NumberLeft(Mended):
    def forward(self, x: Tensor) -> Tensor:
        c, s = self.angle.cos(), self.angle.sin()
        x = x @ torch.stack([c, -s, s, c]).view(2, 2) * float(self.size.detach())
        return self.out(torch.tanh(self.hidden(x)))


class LeafFromNumpy(Mended):
    def forward(self, x: Tensor) -> Tensor:
        c, s = self.angle.cos(), self.angle.sin()
        x = x @ torch.stack([c, -s, s, c]).view(2, 2) * self.size
        h = np.tanh(self.hidden(x).detach().numpy())
        return self.out(torch.from_numpy(h).requires_grad_())


class StraightThrough(Mended):
    def forward(self, x: Tensor) -> Tensor:
        c, s = self.angle.cos(), self.angle.sin()
        h = self.hidden(x @ torch.stack([c, -s, s, c]).view(2, 2) * self.size)
        value = torch.from_numpy(np.tanh(h.detach().numpy()))
        return self.out(h + (value - h).detach())


class Transposed(Mended):
    def forward(self, x: Tensor) -> Tensor:
        c, s = self.angle.cos(), self.angle.sin()
        x = x @ torch.stack([c, s, -s, c]).view(2, 2) * self.size
        return self.out(torch.tanh(self.hidden(x)))


EXERCISE = Exercise(
    id="3.3-three-cuts",
    title="Three cuts in one model",
    minutes=8,
    difficulty="medium",
    deliver="a class `Mended` with the values of `Cut`, in which every parameter gets "
    "its gradient",
    reference=Mended,
    tests=(values, hidden, size, angle, right),
    hints=(
        "Which parameter is nearest to the result and gets no gradient? What lies "
        "between it and the result?",
        "Mend that, run the report again, and take the next one: a cut near the result "
        "hides those behind it.",
        "`torch.tanh` is np.tanh with a history; `torch.stack([...]).view(2, 2)` makes "
        "a matrix out of tensors and keeps theirs.",
    ),
    why="Nothing was wrong with the values, so nothing but a look at the gradients could "
    "show it. Each cut took numbers out of tensors: by `.item()`, by `torch.tensor`, by "
    "NumPy. Each is mended by staying with tensors.",
    wrong=(
        Wrong(NewLeaf, "`angle` gets no gradient"),
        Wrong(NumberLeft, "`size` gets no gradient"),
        Wrong(LeafFromNumpy, "hidden.weight and hidden.bias get no gradient"),
        Wrong(StraightThrough, "but not the right one"),
        Wrong(Transposed, "only the gradient was to change"),
    ),
    variants=(WrittenOut,),
)
