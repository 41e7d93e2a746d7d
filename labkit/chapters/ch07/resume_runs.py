"""Trainings on the digits that are killed and resumed, for the explorer of part 7.2."""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from labkit.lesson.data import data_path

STEPS, BATCH, TRAIN = 600, 50, 1400
JUDGED = 500  # images that the loss is computed on
KILLED = (420, 100, 520)  # steps before the kill
MODEL, WITH_RNG, WITH_OPTIMIZER, ALL = (
    "the model",
    "model, random state",
    "model, optimizer",
    "model, optimizer, random state",
)
SAVED = (MODEL, WITH_RNG, WITH_OPTIMIZER, ALL)
optim = torch.optim
OPTIMIZERS: dict[str, Callable[[Any], optim.Optimizer]] = {
    "Adam, lr 0.01": lambda p: optim.Adam(p, lr=0.01),
    "Adam, lr 0.001": lambda p: optim.Adam(p, lr=0.001),
    "AdamW, lr 0.01": lambda p: optim.AdamW(p, lr=0.01),
    "RMSprop, lr 0.01": lambda p: optim.RMSprop(p, lr=0.01),
    "Adagrad, lr 0.05": lambda p: optim.Adagrad(p, lr=0.05),
    "SGD with momentum, lr 0.1": lambda p: optim.SGD(p, lr=0.1, momentum=0.9),
    "SGD, lr 0.1": lambda p: optim.SGD(p, lr=0.1),
}


@dataclass(frozen=True)
class Run:
    """The loss over 500 training images before each step and at the end, and the weights.

    `weights` holds all of them as one row for each of the same moments.
    """

    losses: tuple[float, ...]
    weights: Tensor


@dataclass(frozen=True)
class Resumed:
    """A run beside the unbroken one, from the step it was killed after."""

    killed: int
    whole: Run
    after: Run

    @property
    def before(self) -> float:
        return self.whole.losses[self.killed]

    @property
    def highest(self) -> float:
        """The highest loss in the 20 steps after the restart."""
        return max(self.after.losses[1:21])

    @property
    def whole_highest(self) -> float:
        """The highest loss of the unbroken run in the same 20 steps."""
        return max(self.whole.losses[self.killed + 1 : self.killed + 21])

    @property
    def back(self) -> int:
        """Steps until the loss is, for the first time after its peak, as low as before."""
        losses = self.after.losses
        peak = losses.index(self.highest)
        later = (n for n, loss in enumerate(losses) if n > peak and loss <= self.before)
        return next(later, len(losses))

    @property
    def apart(self) -> list[float]:
        """How far the weights are from those of the unbroken run, step by step."""
        theirs = self.whole.weights[self.killed :]
        return (self.after.weights - theirs).norm(dim=1).tolist()

    @property
    def same_bits(self) -> bool:
        return torch.equal(self.after.weights, self.whole.weights[self.killed :])


@cache
def digits() -> tuple[Tensor, Tensor]:
    with np.load(data_path("digits.npz")) as data:
        x = torch.from_numpy(data["images"][:TRAIN]).float().flatten(1) / 16
        return x, torch.from_numpy(data["labels"][:TRAIN])


@dataclass(frozen=True)
class Unbroken:
    """A run to the end, with what a checkpoint holds at each of KILLED."""

    run: Run
    states: dict[int, tuple[dict[str, Any], dict[str, Any], Tensor]]


@cache
def unbroken(optimizer: str) -> Unbroken:
    """A training with this optimizer, from the same start each time."""
    model, opt = start(optimizer, 0)
    losses: tuple[float, ...] = ()
    weights, states = [], {}
    for begin, end in pairwise((0, *sorted(KILLED), STEPS)):
        part = go(model, opt, end - begin)
        states[end] = (
            copy.deepcopy(model.state_dict()),
            copy.deepcopy(opt.state_dict()),
            torch.get_rng_state(),
        )
        last = end == STEPS
        losses += part.losses if last else part.losses[:-1]
        weights.append(part.weights if last else part.weights[:-1])
    return Unbroken(Run(losses, torch.cat(weights)), states)


@cache
def resumed(optimizer: str, saved: str, killed: int) -> Resumed:
    """A training with this optimizer, killed after so many steps, and started again.

    `saved` is one of SAVED, `killed` one of KILLED.  The random state of the process is
    left as it was.
    """
    with torch.random.fork_rng(devices=[]):
        whole = unbroken(optimizer)
        weights, state, rng = whole.states[killed]
        model, opt = start(optimizer, 1)  # a new process: another random state
        model.load_state_dict(weights)
        if "optimizer" in saved:
            opt.load_state_dict(copy.deepcopy(state))
        if "random state" in saved:
            torch.set_rng_state(rng)
        return Resumed(killed, whole.run, go(model, opt, STEPS - killed))


def start(optimizer: str, seed: int) -> tuple[nn.Module, optim.Optimizer]:
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    return model, OPTIMIZERS[optimizer](model.parameters())


def go(model: nn.Module, optimizer: optim.Optimizer, steps: int) -> Run:
    """So many steps on batches that are drawn at random."""
    x, y = digits()
    losses, weights = [], []
    for step in range(steps + 1):
        with torch.no_grad():
            losses.append(F.cross_entropy(model(x[:JUDGED]), y[:JUDGED]).item())
            weights.append(nn.utils.parameters_to_vector(model.parameters()).clone())
        if step < steps:
            batch = torch.randint(len(x), (BATCH,))
            loss = F.cross_entropy(model(x[batch]), y[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return Run(tuple(losses), torch.stack(weights))
