"""What becomes of a real model's gradients in float32, bfloat16 and float16."""

from functools import cache

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from labkit.lesson.data import data_path

FORMATS = {
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
    "float32": torch.float32,
}
SMALL, NEW, TRAINED = "a new model, loss × 1e-6", "a new model", "a trained model"
SOURCES = (SMALL, NEW, TRAINED)
BATCH = 128
STEPS = 300


def fates(magnitudes: Tensor, dtype: torch.dtype) -> dict[str, Tensor]:
    """What becomes of each number when it is rounded to `dtype`: a mask for each fate.

    `magnitudes` are positive float64 numbers.  Below the format's smallest normal number
    (`torch.finfo(dtype).tiny`) a value loses digits, or becomes 0.
    """
    rounded = magnitudes.to(dtype).double()
    zero, infinite = rounded == 0, rounded.isinf()
    few = ~zero & (rounded < torch.finfo(dtype).tiny)
    return {
        "zero": zero,
        "few_digits": few,
        "kept": ~(zero | few | infinite),
        "infinite": infinite,
    }


@cache
def gradients(source: str) -> Tensor:
    """The magnitudes of all gradients of one backward, as float64, zeros left out.

    They are those of the weights and those that the backward hands from layer to layer,
    for one batch of 128 digits and a mean loss.  They are computed in float32 without
    any scale; what is 0 there (pixels that are always blank) is 0 in every format.
    """
    if source == SMALL:
        return gradients(NEW) * 1e-6
    x, y = digits()
    model = trained() if source == TRAINED else new_model()
    handed_on = []
    out = x[:BATCH]
    for layer in model:
        out = layer(out)
        out.retain_grad()
        handed_on.append(out)
    F.cross_entropy(out, y[:BATCH]).backward()
    found = [t.grad for t in (*handed_on, *model.parameters()) if t.grad is not None]
    every = torch.cat([grad.flatten() for grad in found]).double().abs()
    return every[every > 0]


@cache
def digits() -> tuple[Tensor, Tensor]:
    """Images (1797, 64) from 0 to 1, and their labels."""
    with np.load(data_path("digits.npz")) as data:
        images = torch.from_numpy(data["images"]).float().flatten(1) / 16
        return images, torch.from_numpy(data["labels"])


def new_model() -> nn.Sequential:
    """The page's model of the digits, always the same; torch's own seed is untouched."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return nn.Sequential(
            nn.Linear(64, 64),
            nn.Tanh(),
            nn.Linear(64, 64),
            nn.Tanh(),
            nn.Linear(64, 10),
        )


@cache
def trained() -> nn.Sequential:
    """The same model after 300 steps of Adam."""
    x, y = digits()
    model = new_model()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for step in range(STEPS):
        rows = torch.arange(step * BATCH, (step + 1) * BATCH) % len(x)
        loss = F.cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model
