"""What the exercise of part 3.2 is tried on: a model and an optimizer that keep notes."""

from collections.abc import Callable, Iterable
from copy import deepcopy
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from labkit.lesson.exercise import given

Batch = tuple[Tensor, Tensor]
Answer = Callable[[nn.Module, torch.optim.Optimizer, Iterable[Batch], int], int]
NONE = -100  # the label that stands for no label


class Recorder(torch.optim.SGD):
    """SGD that keeps a copy of the gradients it was given in each step."""

    def __init__(self, parameters: Any) -> None:
        super().__init__(parameters, lr=0.1)
        self.seen: list[Tensor | None] = []

    def step(self, closure: Any = None) -> Any:
        held = [p.grad for group in self.param_groups for p in group["params"]]
        found = [grad.flatten().clone() for grad in held if grad is not None]
        self.seen.append(torch.cat(found) if found else None)
        return super().step(closure)

    def __repr__(self) -> str:
        return "an SGD"


class Watched(nn.Linear):
    """A small classifier that keeps the number of rows of each call."""

    def __init__(self) -> None:
        super().__init__(3, 4)
        self.rows: list[int] = []

    def forward(self, x: Tensor) -> Tensor:
        self.rows.append(len(x))
        return super().forward(x)


def batches_of(labels: list[tuple[int, int]]) -> list[Batch]:
    """Batches of so many rows, of which so many have a label; always the same."""
    seeded = torch.Generator().manual_seed(1)
    out = []
    for rows, some in labels:
        y = torch.randint(4, (rows,), generator=seeded)
        y[some:] = NONE
        out.append((torch.randn(rows, 3, generator=seeded), y))
    return out


def run(
    answer: Answer, batches: list[Batch], steps: int, left: float = 0.0
) -> tuple[list[Tensor | None], list[Tensor], list[int]]:
    """The gradients of each update, those it should have, and the rows of each call.

    `left` is what stands in every gradient before the call.
    """
    torch.manual_seed(0)
    model = Watched()
    twin = deepcopy(model)
    optimizer = Recorder(model.parameters())
    if left:
        for parameter in model.parameters():
            parameter.grad = torch.full_like(parameter, left)
    given(answer, model, optimizer, iter(batches), steps)
    return optimizer.seen, expected(twin, batches, steps), model.rows


def expected(model: nn.Module, batches: list[Batch], steps: int) -> list[Tensor]:
    """The gradient of the mean over all labels of each window, update after update."""
    optimizer = Recorder(model.parameters())
    for n in range(0, len(batches), steps):
        x, y = map(torch.cat, zip(*batches[n : n + steps], strict=True))
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
    return [grads for grads in optimizer.seen if grads is not None]


def ratio(got: Tensor | None, want: Tensor) -> float:
    assert got is not None
    return float(got @ want / (want @ want))


def off(got: Tensor | None, want: Tensor) -> float:
    """The length of the difference, where 1 is the length of what is right."""
    assert got is not None
    return float((got - want).norm() / want.norm())
