"""Gradients of a few real digits, from one batch and accumulated over micro-batches."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from labkit.lesson.data import data_path

ROWS, PIXELS, HIDDEN = 8, 8, 32
MOST = 64  # samples in all
IGNORED = -100  # what cross_entropy leaves out
LABELS = "one label a sample"
TOKENS = "1 to 8 labels a sample, padded"
MEAN, UNDIVIDED, SUM, SUM_MEAN = (
    "mean ÷ micro-batches",
    "mean, not divided",
    "sum ÷ all labels",
    "sum ÷ micro-batches",
)
NORMS = ("none", "BatchNorm", "GroupNorm")


class NotThese(Exception):
    """A reason, in one sentence, why these sizes cannot be accumulated."""


@dataclass(frozen=True)
class Compared:
    """One accumulated gradient beside that of the big batch, as long as 1.

    `along` is the part in the big batch's direction, `across` the rest, `error` the
    length of the difference; `labels` counts the labels of each micro-batch, `shares`
    what each label of it weighs, where 1 is its weight in the big batch.
    """

    along: float
    across: float
    error: float
    labels: tuple[int, ...]
    shares: tuple[float, ...]


def read_sizes(text: str) -> list[int]:
    """The sizes of the micro-batches in a text like "8, 8, 8, 2".

    Raises NotThese, with a sentence, for anything else.
    """
    words = [word for word in re.split(r"[\s,;+]+", text.strip()) if word]
    odd = [word for word in words if not re.fullmatch(r"[0-9]{1,4}", word)]
    if odd:
        shown = odd[0] if len(odd[0]) <= 16 else f"{odd[0][:15]}…"
        raise NotThese(f"“{shown}” is no size; type whole numbers like 8, 8, 8, 2")
    sizes = [int(word) for word in words]
    if not sizes or min(sizes) < 1:
        raise NotThese("each micro-batch needs at least one sample; type 8, 8, 8, 2")
    if len(sizes) > 12 or sum(sizes) > MOST:
        raise NotThese(
            f"{len(sizes)} micro-batches of {sum(sizes)} samples came; there is room for "
            f"12, and for {MOST} samples"
        )
    return sizes


def compared(sizes: list[int], weighs: str, norm: str, targets: str) -> Compared:
    """Accumulate over micro-batches of these sizes, and compare with one big batch.

    Raises NotThese where BatchNorm would get a single row.
    """
    x, y = samples(sum(sizes), targets)
    if norm == "BatchNorm" and 1 in sizes and targets == LABELS:
        raise NotThese(
            "BatchNorm has no variance to divide by in a batch of one sample"
        )
    big = gradient(norm, [(x, y)], SUM)
    parts = list(zip(x.split(sizes), y.split(sizes), strict=True))
    small = gradient(norm, parts, weighs)
    length = big.norm()
    along = float(small @ big / length**2)
    across = float((small - along * big).norm() / length)
    counts = tuple(int((part != IGNORED).sum()) for _, part in parts)
    factors = [factor(weighs, n, sum(counts), len(counts)) for n in counts]
    shares = tuple(each * sum(counts) for each in factors)
    error = float((small - big).norm() / length)
    return Compared(along, across, error, counts, shares)


def factor(weighs: str, labels: int, all_labels: int, batches: int) -> float:
    """What the sum of a micro-batch's losses is multiplied by before backward."""
    return {
        MEAN: 1 / labels / batches,
        UNDIVIDED: 1 / labels,
        SUM: 1 / all_labels,
        SUM_MEAN: 1 / batches,
    }[weighs]


def gradient(norm: str, parts: list[tuple[Tensor, Tensor]], weighs: str) -> Tensor:
    """All gradients as one vector, after a backward for each of the parts."""
    model = model_with(norm, parts[0][0].shape[-1])
    model.zero_grad()
    counts = [int((y != IGNORED).sum()) for _, y in parts]
    for (x, y), labels in zip(parts, counts, strict=True):
        scores = model(x.flatten(0, -2))
        losses = F.cross_entropy(scores, y.flatten(), reduction="sum")
        (losses * factor(weighs, labels, sum(counts), len(parts))).backward()
    return torch.cat(
        [p.grad.flatten() for p in model.parameters() if p.grad is not None]
    )


@cache
def model_with(norm: str, inputs: int) -> nn.Module:
    """A small network in training mode, always with the same weights."""
    layers: dict[str, Callable[[], nn.Module]] = {
        "none": nn.Identity,
        "BatchNorm": lambda: nn.BatchNorm1d(HIDDEN),
        "GroupNorm": lambda: nn.GroupNorm(4, HIDDEN),
    }
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return nn.Sequential(
            nn.Linear(inputs, HIDDEN), layers[norm](), nn.ReLU(), nn.Linear(HIDDEN, 10)
        )


@cache
def digits() -> tuple[Tensor, Tensor]:
    with np.load(data_path("digits.npz")) as data:
        x = torch.from_numpy(data["images"][:MOST]).float() / 16
        return x, torch.from_numpy(data["labels"][:MOST])


def samples(count: int, targets: str) -> tuple[Tensor, Tensor]:
    """Images with one label each; or their rows as tokens, some of them padding.

    A padded sample has a label for its first rows only, as a sentence has for its words.
    """
    images, labels = digits()
    if targets == LABELS:
        return images[:count].reshape(count, 1, ROWS * PIXELS), labels[:count, None]
    lengths = torch.arange(count) * 3 % ROWS + 1
    padding = torch.arange(ROWS) >= lengths[:, None]
    y = labels[:count, None].expand(-1, ROWS).masked_fill(padding, IGNORED)
    return images[:count], y
