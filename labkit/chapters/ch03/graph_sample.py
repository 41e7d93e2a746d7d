"""What the graph explorer computes: y with and without cuts, and both gradients."""

from collections.abc import Mapping
from functools import cache
from typing import Any

import torch
from torch import nn

from labkit.chapters.ch03.expressions import evaluate
from labkit.chapters.ch03.graph_page import RIGHT
from labkit.chapters.ch03.pieces import Refused

SHAPES = {"x": (32, 64), "w": (64, 16), "b": (16,)}
AS_IT_IS, DETACH, NO_GRAD, ITEM = "h", "h.detach()", "h, made under no_grad", "h.item()"


class Steps(nn.Module):
    """A small recurrent cell that reads the rows of x one by one."""

    def __init__(self) -> None:
        super().__init__()
        self.read = nn.Linear(64, 16)
        self.carry = nn.Linear(16, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        state = x.new_zeros(16)
        for row in x:
            state = torch.tanh(self.read(row) + self.carry(state))
        return state


@cache
def models() -> dict[str, nn.Module]:
    """Two models that an expression may call, always with the same weights."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        mlp = nn.Sequential(nn.Linear(64, 16), nn.ReLU(), nn.Linear(16, 4))
        return {"mlp": mlp, "rnn": Steps()}


def leaves_of(needed: str) -> dict[str, torch.Tensor]:
    """x, w and b, always the same; `needed` lists those that require a gradient."""
    draw = torch.Generator().manual_seed(0)
    return {
        name: (torch.randn(shape, generator=draw) / 4).requires_grad_(
            name in needed.split(", ")
        )
        for name, shape in SHAPES.items()
    }


def both(
    h: str, y: str, uses: str, names: Mapping[str, Any]
) -> tuple[torch.Tensor, torch.Tensor]:
    """y as it is asked for, and y as it would be without any cut."""
    usable = dict(names)
    whole_h = part("h", h, usable, cutting=False)
    with torch.set_grad_enabled(uses != NO_GRAD):
        recorded_h = part("h", h, usable, cutting=True)
    if uses == DETACH and isinstance(recorded_h, torch.Tensor):
        recorded_h = recorded_h.detach()
    if uses == ITEM and isinstance(recorded_h, torch.Tensor):
        if recorded_h.numel() != 1:
            raise Refused(
                f"h.item() needs an h of one element, and this one has "
                f"{recorded_h.numel():,}; try h = w.norm()"
            )
        recorded_h = recorded_h.item()
    whole = part("y", y, usable | {"h": whole_h}, cutting=False)
    recorded = part("y", y, usable | {"h": recorded_h}, cutting=True)
    if not isinstance(whole, torch.Tensor):
        raise Refused("y is a plain number: no tensor, and so no graph")
    if not isinstance(recorded, torch.Tensor):
        recorded = torch.tensor(recorded)
    return recorded, whole


def part(name: str, text: str, names: Mapping[str, Any], cutting: bool) -> Any:
    """The value of one of the two expressions; a refusal says which it is about."""
    if not text.strip():
        raise Refused(f"{name} is empty; type an expression like x @ w")
    try:
        return evaluate(text, names, cutting)
    except Refused as why:
        raise Refused(f"in {name}, {why}") from None


def parameters() -> dict[str, torch.Tensor]:
    """The parameters of both models by name."""
    return {
        f"{model}.{name}": tensor
        for model, module in models().items()
        for name, tensor in module.named_parameters()
    }


def gradients(
    recorded: torch.Tensor, whole: torch.Tensor, leaves: Mapping[str, torch.Tensor]
) -> dict[str, str]:
    """What becomes of the gradient of each leaf that y depends on.

    Both are really computed, of the sum of y.
    """
    asked = {name: leaf for name, leaf in leaves.items() if leaf.requires_grad}
    right = of_sum(whole, list(asked.values()))
    found = of_sum(recorded, list(asked.values()))
    states = {}
    for name, want, got in zip(asked, right, found, strict=True):
        if want is None and got is None:
            continue
        if got is None:
            states[name] = "no gradient"
            continue
        off = (got - want).norm() / want.norm() if want is not None else got.norm()
        if not torch.isfinite(off):
            states[name] = "gradient is not finite"
        else:
            states[name] = RIGHT if off < 1e-5 else f"gradient {float(off):.0%} off"
    return states


def of_sum(y: torch.Tensor, leaves: list[torch.Tensor]) -> list[torch.Tensor | None]:
    if y.grad_fn is None or not leaves:
        return [None] * len(leaves)
    ones = torch.ones_like(y)
    found = torch.autograd.grad(y, leaves, ones, retain_graph=True, allow_unused=True)
    return list(found)
