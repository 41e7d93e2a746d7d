"""Answers to exercise 6.2-metric: the reference, another right one, and wrong ones."""

import math
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor


def global_accuracy(correct, n):
    place = torch.arange(len(correct)) * dist.get_world_size() + dist.get_rank()
    own = correct[place < n]  # behind the end, the sampler repeats the beginning
    sums = torch.tensor([own.sum(), len(own)], dtype=torch.float64)
    dist.all_reduce(sums)
    return (sums[0] / sums[1]).item()


# --- right, written differently ---------------------------------------------------------


def gathered(correct: Tensor, n: int) -> float:
    """All answers in their order, as a list, and cut behind the last sample."""
    parts: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(parts, correct.tolist())
    longest = max(len(part) for part in parts)
    row = [part[k] for k in range(longest) for part in parts if k < len(part)]
    return sum(row[:n]) / n


# --- wrong ------------------------------------------------------------------------------


def own(correct: Tensor) -> float:
    return correct.double().mean().item()


def reduced(*values: float) -> list[float]:
    """The sums over all ranks."""
    sums = torch.tensor(values, dtype=torch.float64)
    dist.all_reduce(sums)
    return sums.tolist()


def real(correct: Tensor, n: int) -> Tensor:
    place = torch.arange(len(correct)) * dist.get_world_size() + dist.get_rank()
    return correct[place < n]


def local(correct: Tensor, n: int) -> float:
    """Each rank its own."""
    return own(correct)


def rates_added(correct: Tensor, n: int) -> float:
    """`all_reduce` after the division, which adds the rates."""
    return reduced(own(correct))[0]


def mean_of_means(correct: Tensor, n: int) -> float:
    """The mean of the ranks' accuracies, however many samples stand behind each."""
    return reduced(own(real(correct, n)))[0] / dist.get_world_size()


def padded(correct: Tensor, n: int) -> float:
    """Sums, with what the sampler has repeated."""
    right, count = reduced(correct.sum().item(), len(correct))
    return right / count


def over_n(correct: Tensor, n: int) -> float:
    """The repeated samples are in the sum, and not in the number."""
    return reduced(correct.sum().item())[0] / n


def only_rank_zero(correct: Tensor, n: int) -> float:
    """`reduce` to rank 0: the others keep what is no result."""
    kept = real(correct, n)
    sums = torch.tensor([kept.sum(), len(kept)], dtype=torch.float64)
    dist.reduce(sums, 0)
    if dist.get_rank() > 0:
        sums = torch.tensor([kept.sum(), len(kept)], dtype=torch.float64)
    return (sums[0] / sums[1]).item() if sums[1] else 0.0


def last_one_off(correct: Tensor, n: int) -> float:
    """The last sample of every rank is taken for a repeated one, where any is."""
    fits = n % dist.get_world_size() == 0
    kept = correct if fits else correct[:-1]
    right, count = reduced(kept.sum().item(), len(kept))
    return right / count if count else math.nan


def weighted_means(correct: Tensor, n: int) -> float:
    """Means, weighted by their counts: no number times NaN is 0."""
    kept = real(correct, n)
    right, count = reduced(own(kept) * len(kept), len(kept))
    return right / count


def in_steps_of_a_hundredth(correct: Tensor, n: int) -> float:
    """Rounded, for the eye."""
    return round(global_accuracy(correct, n), 2)


TOGETHER = (
    *(gathered, local, rates_added, mean_of_means, padded, over_n, only_rank_zero),
    *(last_one_off, weighted_means, in_steps_of_a_hundredth),
)
