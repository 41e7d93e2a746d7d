"""Exercise 6.2-metric in the ranks: the learner's function on four shards."""

from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.utils.data import DistributedSampler

from labkit.chapters.ch06.rank_side import on_each

# samples, and whether a DistributedSampler shares them out, which fills up the last round
CASES = {
    "even": (12, True),
    "uneven": (7, False),
    "padded": (7, True),
    "one": (1, True),
}


def answers(n: int) -> Tensor:
    """Which of the samples a model got right: sample 0 among them."""
    return torch.arange(n) % 5 < 2


def shard(n: int, sampled: bool) -> list[int]:
    """The samples of this rank."""
    rank, world = dist.get_rank(), dist.get_world_size()
    if not sampled:
        return list(range(n))[rank::world]
    data: Any = range(n)
    return list(DistributedSampler(data, world, rank, shuffle=False))


def look(answer: Callable[..., Any]) -> dict[str, Any]:
    """What the answer returned here, by case."""
    got = {}
    for name, (n, sampled) in CASES.items():
        correct = answers(n)[shard(n, sampled)]
        before = correct.clone()
        got[name] = as_number(answer(correct, n))
        if not torch.equal(correct, before):
            raise AssertionError("your code changed its argument `correct`")
    return {"got": got}


def as_number(value: Any) -> float | str:
    """The number that came, or what came instead."""
    if isinstance(value, Tensor) and value.numel() == 1:
        return float(value.item())
    if isinstance(value, int | float):
        return float(value)
    return f"{type(value).__name__}"


def run(home: str, names: list[str]) -> None:
    """Look at each of these functions of the module `home`."""
    on_each(home, names, look)
