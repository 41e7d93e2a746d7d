"""What the exercise of part 4.3 is tested with: samples, and an answer's three tensors."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from labkit.lesson.exercise import given

Answer = Callable[..., Any]
SIZES = (3, 5, 2, 4)  # of the samples in a batch
WIDTH = max(SIZES)


def samples(dtype: torch.dtype = torch.int64, first: float = 1) -> list[Tensor]:
    """Samples of the sizes above, with a value of its own in every place."""
    values = first + torch.arange(sum(SIZES), dtype=torch.float64)
    return list(values.to(dtype).split(SIZES))


def padded(
    answer: Answer, parts: list[Tensor], pad: float, labels: tuple[float, ...] = ()
) -> tuple[Tensor, Tensor, Tensor]:
    """What the answer makes of a batch; that it is no three tensors is a failed test."""
    labels = labels or tuple(range(len(parts)))
    got = given(answer, list(zip(parts, labels, strict=True)), pad)
    wanted = "three tensors are wanted: samples, mask, labels"
    assert isinstance(got, tuple | list), f"{wanted}; one {type(got).__name__} came"
    assert len(got) == 3, f"{wanted}; {len(got)} came"
    for name, value in zip(("samples", "mask", "labels"), got, strict=True):
        assert isinstance(value, Tensor), (
            f"the {name} came as {type(value).__name__}, and a tensor is wanted"
        )
    return got[0], got[1], got[2]
