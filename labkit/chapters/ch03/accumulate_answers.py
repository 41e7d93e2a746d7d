"""Answers to the exercise of part 3.2 that people really give, right and wrong."""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice

import torch
from torch import nn
from torch.nn import functional as F

from labkit.chapters.ch03.accumulate_bench import NONE, Answer, Batch

Share = Callable[[int, list[Batch], int], float]


def labels_of(window: list[Batch]) -> int:
    return sum(int((y != NONE).sum()) for _, y in window)


def windows(batches: Iterable[Batch], steps: int) -> Iterator[list[Batch]]:
    batches = iter(batches)
    while window := list(islice(batches, steps)):
        yield window


def answering(share: Share, order: str = "zero backward step") -> Answer:
    """An answer that takes window by window, and weighs each batch by `share`.

    `share` gets the batch's labels, the window and the steps, and says what one label's
    loss is multiplied by; `order` is what is done with a window.
    """

    def accumulate(
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        batches: Iterable[Batch],
        steps: int,
    ) -> int:
        updates = 0
        for window in windows(batches, steps):
            for act in order.split():
                if act == "zero":
                    optimizer.zero_grad()
                elif act == "step":
                    optimizer.step()
                else:
                    for x, y in window:
                        each = share(max(int((y != NONE).sum()), 1), window, steps)
                        losses = F.cross_entropy(model(x), y, reduction="sum")
                        (losses * each).backward()
            updates += 1
        return updates

    return accumulate


def due(own: int, window: list[Batch], steps: int) -> float:
    """What is right: every label of the window weighs the same."""
    return 1 / labels_of(window)


divided_by_steps = answering(lambda own, window, steps: 1 / own / steps)
mean_of_means = answering(lambda own, window, steps: 1 / own / len(window))
counted_by_rows = answering(
    lambda own, window, steps: 1 / sum(len(y) for _, y in window)
)
never_divided = answering(lambda own, window, steps: 1 / own)
never_zeroed = answering(due, "backward step")
zeroed_in_the_gap = answering(due, "backward zero step")
zeroed_only_after = answering(due, "backward step zero")
mean_times_count = answering(
    lambda own, window, steps: 1 / own * (own / labels_of(window))
)


def whenever_full(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    batches: Iterable[Batch],
    steps: int,
) -> int:
    """An update whenever the count is full, and none for the rest."""
    optimizer.zero_grad()
    updates = 0
    for i, (x, y) in enumerate(batches):
        (F.cross_entropy(model(x), y) / steps).backward()
        if (i + 1) % steps == 0:
            optimizer.step()
            optimizer.zero_grad()
            updates += 1
    return updates


def all_together(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    batches: Iterable[Batch],
    steps: int,
) -> int:
    """The big batch itself, which was not to fit."""
    updates = 0
    for window in windows(batches, steps):
        x, y = map(torch.cat, zip(*window, strict=True))
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
        updates += 1
    return updates


def returns_nothing(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    batches: Iterable[Batch],
    steps: int,
) -> None:
    """Right updates, and nobody is told how many."""
    answering(due)(model, optimizer, batches, steps)


def accumulate_and_divide(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    batches: Iterable[Batch],
    steps: int,
) -> int:
    def update(labels: int) -> None:
        for p in model.parameters():
            if p.grad is not None:
                p.grad /= labels
        optimizer.step()
        optimizer.zero_grad()

    optimizer.zero_grad()
    seen, labels, updates = 0, 0, 0
    for x, y in batches:
        F.cross_entropy(model(x), y, reduction="sum").backward()
        seen, labels = seen + 1, labels + int((y != -100).sum())
        if seen == steps:
            update(labels)
            seen, labels, updates = 0, 0, updates + 1
    if seen:
        update(labels)
    return updates + (seen > 0)
