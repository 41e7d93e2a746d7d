"""Exercise 6.2-metric: one accuracy from the shards of all ranks."""

import math
from collections.abc import Callable
from typing import Any

from torch.utils.data import DistributedSampler

from labkit.chapters.ch06 import metric_answers as answers
from labkit.chapters.ch06.metric_bench import CASES
from labkit.chapters.ch06.metric_bench import answers as right_ones
from labkit.chapters.ch06.rank_check import NPROC, noted
from labkit.lesson.exercise import Exercise, Wrong

BENCH = "labkit.chapters.ch06.metric_bench"
Answer = Callable[..., Any]


def judge(answer: Answer, case: str) -> None:
    """AssertionError unless every rank returned the accuracy of the whole data."""
    found = noted(answer, BENCH)
    got = [values["got"][case] for values in found]
    n, _ = CASES[case]
    right = right_ones(n)
    good, want = int(right.sum()), right.double().mean().item()
    for rank, value in enumerate(got):
        assert isinstance(value, float), (
            f"a number is expected, and rank {rank} returned a {value}"
        )
    says = ", ".join(
        f"rank {rank} returned {value:.4g}" for rank, value in enumerate(got)
    )
    asked = f"{good} of {n} samples are right, {want:.4g}, and {says}"
    assert all(close(value, want) for value in got), f"{asked}{why(case, got, want)}"


def why(case: str, got: list[Any], want: float) -> str:
    """What the numbers look like, where they are those of a known mistake."""
    n, sampled = CASES[case]
    right = right_ones(n)
    parts = [shares(n, sampled, rank) for rank in range(NPROC)]
    real = [
        right[[i for k, i in enumerate(p) if k * NPROC + r < n]]
        for r, p in enumerate(parts)
    ]
    own = [right[part].double().mean().item() for part in parts]
    every = [int(right[part].sum()) for part in parts]
    count = sum(len(part) for part in parts)
    if any(math.isnan(value) for value in got):
        return ": a rank without samples has no mean. Add up counts, and divide once"
    if close(got[0], want):
        return ": every rank needs the result, and `reduce` gives it to one"
    if close(got[0], own[0]) and close(got[1], own[1]) and not close(own[0], own[1]):
        return ": each rank knows only its own samples"
    if all(close(value, sum(own)) for value in got):
        return ": that is the sum of the ranks' accuracies. Divide after `all_reduce`"
    means = [part.double().mean().item() for part in real if len(part)]
    if all(close(value, sum(means) / NPROC) for value in got):
        return (
            ": that is the mean of the ranks' means, which counts a sample of a small "
            "share for more than one of a large share"
        )
    if all(close(value, sum(every) / count) for value in got):
        return (
            f": the sampler has repeated samples to fill up the last round, and "
            f"{count} are counted instead of {n}"
        )
    if all(close(value, sum(every) / n) for value in got):
        return (
            f": {sum(every)} / {n} has repeated samples above the line, and not below"
        )
    if close(got[0], round(want, 2)):
        return ": that is rounded; rounding is for printing"
    return f": each of the {n} samples counts once, whichever rank has read it"


def close(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=1e-5, abs_tol=1e-9)


def shares(n: int, sampled: bool, rank: int) -> list[int]:
    if not sampled:
        return list(range(n))[rank::NPROC]
    data: Any = range(n)
    return list(DistributedSampler(data, NPROC, rank, shuffle=False))


def even(answer: Answer) -> None:
    """shares of the same size"""
    judge(answer, "even")


def uneven(answer: Answer) -> None:
    """one rank has a sample more"""
    judge(answer, "uneven")


def repeated(answer: Answer) -> None:
    """a sampler that repeats a sample"""
    judge(answer, "padded")


def one(answer: Answer) -> None:
    """a single sample, and two ranks"""
    judge(answer, "one")


EXERCISE = Exercise(
    id="6.2-metric",
    title="One accuracy from all ranks",
    minutes=10,
    difficulty="medium",
    deliver="`global_accuracy(correct, n)`: the same number on every rank, each sample "
    "counted once",
    reference=answers.global_accuracy,
    tests=(even, uneven, repeated, one),
    hints=(
        "Which two numbers of each rank are enough to compute the accuracy of all, and "
        "may simply be added up?",
        "Put the number of right answers and the number of samples into one tensor, "
        "`dist.all_reduce` it, and divide after that.",
        "Sample k of rank r has place k · world + r in the sampler's list. What stands "
        "behind place n - 1 was there before: leave it out of both numbers.",
    ),
    why="Counts add up, means do not. One `all_reduce` of two numbers is all the "
    "communication, and every rank gets the sums, so that all take the same decisions "
    "from it (early stopping, the best checkpoint). The place tells which samples are "
    "repeated, without a look at the data. (On GPUs the tensor lives on the GPU.)",
    wrong=(
        Wrong(answers.local, "knows only its own samples"),
        Wrong(answers.rates_added, "the sum of the ranks' accuracies"),
        Wrong(answers.only_rank_zero, "`reduce` gives it to one"),
        Wrong(answers.mean_of_means, "the mean of the ranks' means"),
        Wrong(answers.padded, "to fill up the last round"),
        Wrong(answers.over_n, "above the line"),
        Wrong(answers.weighted_means, "has no mean"),
        Wrong(answers.last_one_off, "whichever rank has read it"),
        Wrong(answers.in_steps_of_a_hundredth, "rounding is for printing"),
    ),
    variants=(answers.gathered,),
    seconds=120.0,
)
