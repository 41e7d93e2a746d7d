"""Answers to the exercise of part 5.3: one float16 step, right and wrong ones."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

Batches = list[tuple[Tensor, Tensor]]


def amp_step(
    model: nn.Module, optimizer: Any, scaler: Any, batches: Batches, max_norm: float
) -> Tensor:
    optimizer.zero_grad()
    samples = sum(len(y) for _, y in batches)
    for x, y in batches:
        with torch.amp.autocast(x.device.type, dtype=torch.float16):
            loss = F.cross_entropy(model(x), y, reduction="sum") / samples
        scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    scaler.step(optimizer)
    scaler.update()
    return norm


def weighted_means(
    model: nn.Module, optimizer: Any, scaler: Any, batches: Batches, max_norm: float
) -> Tensor:
    samples = sum(len(x) for x, _ in batches)
    for x, y in batches:
        with torch.amp.autocast(x.device.type, torch.float16):
            loss = F.cross_entropy(model(x), y)
        scaler.scale(loss * len(x) / samples).backward()
    scaler.unscale_(optimizer)
    norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()
    return norm


def backward(
    model: nn.Module, scaler: Any, batches: Batches, dtype: torch.dtype = torch.float16
) -> None:
    """Add up the scaled gradients of the mean loss over all samples of the batches."""
    samples = sum(len(y) for _, y in batches)
    for x, y in batches:
        with torch.amp.autocast(x.device.type, dtype=dtype):
            loss = F.cross_entropy(model(x), y, reduction="sum") / samples
        scaler.scale(loss).backward()


def finish(
    model: nn.Module, optimizer: Any, scaler: Any, max_norm: float, unscale: bool = True
) -> Tensor:
    """What is left after the backward: unscale, clip, step, update."""
    if unscale:
        scaler.unscale_(optimizer)
    norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    scaler.step(optimizer)
    scaler.update()
    return norm


def clips_scaled(
    model: nn.Module, optimizer: Any, scaler: Any, batches: Batches, max_norm: float
) -> Tensor:
    optimizer.zero_grad()
    backward(model, scaler, batches)
    return finish(model, optimizer, scaler, max_norm, unscale=False)


def forgets_to_scale(
    model: nn.Module, optimizer: Any, scaler: Any, batches: Batches, max_norm: float
) -> Tensor:
    optimizer.zero_grad()
    scaler.scale(torch.zeros(1))  # it has to be called once, or unscale_ raises
    samples = sum(len(y) for _, y in batches)
    for x, y in batches:
        with torch.amp.autocast(x.device.type, dtype=torch.float16):
            loss = F.cross_entropy(model(x), y, reduction="sum") / samples
        loss.backward()
    return finish(model, optimizer, scaler, max_norm)


def mean_of_means(
    model: nn.Module, optimizer: Any, scaler: Any, batches: Batches, max_norm: float
) -> Tensor:
    optimizer.zero_grad()
    for x, y in batches:
        with torch.amp.autocast(x.device.type, dtype=torch.float16):
            loss = F.cross_entropy(model(x), y) / len(batches)
        scaler.scale(loss).backward()
    return finish(model, optimizer, scaler, max_norm)


def sum_of_means(
    model: nn.Module, optimizer: Any, scaler: Any, batches: Batches, max_norm: float
) -> Tensor:
    optimizer.zero_grad()
    for x, y in batches:
        with torch.amp.autocast(x.device.type, dtype=torch.float16):
            loss = F.cross_entropy(model(x), y)
        scaler.scale(loss).backward()
    return finish(model, optimizer, scaler, max_norm)


def last_batch_only(
    model: nn.Module, optimizer: Any, scaler: Any, batches: Batches, max_norm: float
) -> Tensor:
    samples = sum(len(y) for _, y in batches)
    for x, y in batches:
        optimizer.zero_grad()
        with torch.amp.autocast(x.device.type, dtype=torch.float16):
            loss = F.cross_entropy(model(x), y, reduction="sum") / samples
        scaler.scale(loss).backward()
    return finish(model, optimizer, scaler, max_norm)


def default_dtype(
    model: nn.Module, optimizer: Any, scaler: Any, batches: Batches, max_norm: float
) -> Tensor:
    optimizer.zero_grad()
    backward(model, scaler, batches, torch.get_autocast_dtype("cpu"))
    return finish(model, optimizer, scaler, max_norm)


def no_autocast(
    model: nn.Module, optimizer: Any, scaler: Any, batches: Batches, max_norm: float
) -> Tensor:
    optimizer.zero_grad()
    samples = sum(len(y) for _, y in batches)
    for x, y in batches:
        loss = F.cross_entropy(model(x), y, reduction="sum") / samples
        scaler.scale(loss).backward()
    return finish(model, optimizer, scaler, max_norm)


def only_measures(
    model: nn.Module, optimizer: Any, scaler: Any, batches: Batches, max_norm: float
) -> Tensor:
    optimizer.zero_grad()
    backward(model, scaler, batches)
    return finish(model, optimizer, scaler, float("inf"))


def always_that_long(
    model: nn.Module, optimizer: Any, scaler: Any, batches: Batches, max_norm: float
) -> Tensor:
    optimizer.zero_grad()
    backward(model, scaler, batches)
    scaler.unscale_(optimizer)
    norm = nn.utils.clip_grad_norm_(model.parameters(), float("inf"))
    for p in model.parameters():
        if p.grad is not None:
            p.grad *= max_norm / norm
    scaler.step(optimizer)
    scaler.update()
    return norm


def plain_step(
    model: nn.Module, optimizer: Any, scaler: Any, batches: Batches, max_norm: float
) -> Tensor:
    optimizer.zero_grad()
    backward(model, scaler, batches)
    scaler.unscale_(optimizer)
    norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    optimizer.step()
    scaler.update()
    return norm


def no_update(
    model: nn.Module, optimizer: Any, scaler: Any, batches: Batches, max_norm: float
) -> Tensor:
    optimizer.zero_grad()
    backward(model, scaler, batches)
    scaler.unscale_(optimizer)
    norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    scaler.step(optimizer)
    return norm


def never_reset(
    model: nn.Module, optimizer: Any, scaler: Any, batches: Batches, max_norm: float
) -> Tensor:
    backward(model, scaler, batches)
    return finish(model, optimizer, scaler, max_norm)
