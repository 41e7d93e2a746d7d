"""The training of exercise 7.2-resume: small, and random in three places."""

import random
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

EPOCHS, STEPS, WARM_UP = 8, 6, 2


def make_model() -> nn.Module:
    return nn.Sequential(
        nn.Linear(16, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 4)
    )


def make_optimizer(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.AdamW(model.parameters(), lr=0.01)


def make_scheduler(optimizer: torch.optim.Optimizer) -> Any:
    """A warm-up of two epochs, then a cosine."""
    kinds = torch.optim.lr_scheduler
    warm_up = kinds.LinearLR(optimizer, start_factor=0.1, total_iters=WARM_UP)
    rest = kinds.CosineAnnealingLR(optimizer, T_max=EPOCHS)
    return kinds.SequentialLR(optimizer, [warm_up, rest], milestones=[WARM_UP])


MAKERS = (make_model, make_optimizer, make_scheduler)


def data() -> tuple[Tensor, Tensor]:
    """Sixty rows with one of four labels each, always the same."""
    seeded = torch.Generator().manual_seed(1)
    x = torch.randn(60, 16, generator=seeded)
    return x, x[:, :4].argmax(dim=1)


def one_epoch(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    scheduler: Any,
    after_step: Callable[[int], None] = lambda step: None,
) -> None:
    """Six steps, then one of the schedule.

    Shuffling and dropout draw from torch's generator, the brightness from Python's.
    """
    x, y = data()
    for step, batch in enumerate(torch.randperm(len(x)).split(len(x) // STEPS)):
        brightness = random.uniform(0.8, 1.2)
        loss = F.cross_entropy(model(x[batch] * brightness), y[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        after_step(step)
    scheduler.step()


def train(
    checkpoint: Any,
    path: Any,
    epochs: int = EPOCHS,
    after_step: Callable[[int, int], None] = lambda epoch, step: None,
    tell: Callable[[str, int], None] = lambda what, epoch: None,
    before_save: Callable[[int], None] = lambda epoch: None,
) -> nn.Module:
    """Train from where `checkpoint` begins to the end, saving after each epoch."""
    seed()
    first, model, optimizer, scheduler = checkpoint.start(path, *MAKERS)
    tell("first", first)
    for epoch in range(first, epochs):
        one_epoch(model, optimizer, scheduler, partial(after_step, epoch))
        before_save(epoch)
        checkpoint.save(path, epoch, model, optimizer, scheduler)
        tell("saved", epoch)
    return model


def seed() -> None:
    """What a script does first, each time it is started."""
    torch.manual_seed(0)
    random.seed(0)


class NoCheckpoint:
    """Saves nothing, and always begins at the beginning."""

    def save(self, path: Any, epoch: int, *parts: Any) -> None:
        pass

    def start(
        self, path: Any, make_model: Any, make_optimizer: Any, make_scheduler: Any
    ) -> tuple[int, nn.Module, torch.optim.Optimizer, Any]:
        model = make_model()
        optimizer = make_optimizer(model)
        return 0, model, optimizer, make_scheduler(optimizer)
