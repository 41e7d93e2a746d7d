"""The exercises of part 2.2: squared distances within a byte budget and a tolerance."""

import tracemalloc
from collections.abc import Callable
from functools import wraps
from itertools import pairwise

import torch
from torch import Tensor

from labkit.chapters.ch02 import pairwise_answers as answers
from labkit.lesson.costs import size
from labkit.lesson.exercise import Exercise, Wrong, given
from labkit.measure.memory import track_memory
from labkit.measure.memory_trace import MemoryTrace

Answer = Callable[[Tensor, Tensor], Tensor]


def points(count: int, features: int, seed: int, centre: float = 0.0) -> Tensor:
    """`count` points around `centre`, always the same for a seed."""
    seeded = torch.Generator().manual_seed(seed)
    return torch.randn(count, features, generator=seeded) + centre


def truth(x: Tensor, y: Tensor) -> Tensor:
    """The squared distances by their definition, in double precision."""
    return ((x.double()[:, None] - y.double()) ** 2).sum(-1)


def worst(got: Tensor, x: Tensor, y: Tensor) -> float:
    """The largest error of the answer; infinite where it is no number."""
    error = (got.double() - truth(x, y)).abs()
    return error.nan_to_num(nan=torch.inf).max().item()


def check_shape(got: Tensor, n: int, m: int) -> None:
    hint = ": is the last, shorter chunk missing?" if len(got) < n else ""
    assert got.shape == (n, m), (
        f"x has {n} rows and y has {m}, so the shape is ({n}, {m}); "
        f"{tuple(got.shape)} came{hint}"
    )


def by_definition(answer: Answer) -> None:
    """five points against seven, around 0"""
    x, y = points(5, 3, seed=0), points(7, 3, seed=1)
    got = given(answer, x, y)
    assert isinstance(got, Tensor), (
        f"a tensor is asked for, not this {type(got).__name__}"
    )
    check_shape(got, 5, 7)
    assert got.dtype == torch.float32, (
        f"x and y are float32 and so is the result; {got.dtype} came"
    )
    if torch.allclose(got.double() ** 2, truth(x, y), atol=1e-3):
        raise AssertionError(
            "these are the distances; the squared distances are asked for"
        )
    assert worst(got, x, y) < 1e-2, (
        f"entry [0, 0] should be {truth(x, y)[0, 0].item():.4f} and is "
        f"{got[0, 0].item():.4f}: the sum of the squared differences of x[0] and y[0]"
    )


def any_number_of_rows(answer: Answer) -> None:
    """97 points against one, and 100 against 101"""
    for n, m in ((97, 1), (100, 101)):
        x, y = points(n, 4, seed=2), points(m, 4, seed=3)
        got = given(answer, x, y)
        check_shape(got, n, m)
        wrong = worst(got, x, y)
        assert wrong < 1e-2, f"with {n} and {m} rows, one value is off by {wrong:.3g}"


def within_budget(answer: Answer) -> None:
    """the bytes of new tensors at their peak, for 400 and 300 points of 64 features"""
    x, y = points(400, 64, seed=4), points(300, 64, seed=5)
    traces: list[MemoryTrace] = []
    arrays = []

    @wraps(answer)
    def tracked(x: Tensor, y: Tensor) -> Tensor:
        tracemalloc.start()  # NumPy reports its memory to it
        try:
            with track_memory() as memory:
                result = answer(x, y)
            arrays.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
        traces.append(memory)
        return result

    given(tracked, x, y)
    peak, result = traces[-1].peak_bytes, 4 * 400 * 300
    assert peak <= 4 * result, (
        f"the result has {size(result)} and four times that is allowed, but the new "
        f"tensors took {size(peak)} at their peak, {peak / result:.0f} times the "
        f"result: {cause(traces[-1], result)}"
    )
    assert arrays[-1] <= 4 * result, (
        f"NumPy's arrays count as well, and they took {size(arrays[-1])} at their peak, "
        f"{arrays[-1] / result:.0f} times the result"
    )


def cause(trace: MemoryTrace, result: int) -> str:
    """What made the peak so high, read from the largest tensor."""
    largest = max(b.bytes - a.bytes for a, b in pairwise(trace.timeline))
    if largest >= 64 * result:
        return "one of them has all three axes, 400 × 300 × 64"
    if largest <= result:
        return "none is larger than the result, so too many are kept at the same time"
    return (
        f"the largest has {size(largest)}, {largest / result:.3g} times the result, and "
        "it is not alone"
    )


def far_from_the_origin(answer: Answer) -> None:
    """accuracy in one cloud of points around 1000"""
    x, y = points(60, 64, seed=6, centre=1000), points(50, 64, seed=7, centre=1000)
    y[:10] = x[:10]
    got = given(answer, x, y)
    least = got.min().item()
    assert least > -0.01, (
        f"a square came out negative, {least:.3g}: |x|² + |y|² − 2 x·y takes the "
        "difference of numbers near 64 million, and float32 has seven digits"
    )
    wrong = worst(got, x, y)
    assert wrong < 0.01, (
        f"around 1000 one value is off by {wrong:.3g}, where a typical one is 128. Does "
        "your way, or the function you call, multiply before it subtracts?"
    )


def two_clouds(answer: Answer) -> None:
    """accuracy in two clouds of points, around 1000 and around -1000"""
    x = torch.cat([points(30, 64, seed=8, centre=c) for c in (1000, -1000)])
    y = torch.cat([points(30, 64, seed=9, centre=c) for c in (1000, -1000)])
    got = given(answer, x, y)
    near = truth(x, y) < 1000
    wrong = (got.double() - truth(x, y))[near].abs().nan_to_num(nan=torch.inf).max()
    assert wrong < 0.01, (
        f"within one of two clouds a value is off by {wrong.item():.3g}. Moving all "
        "points to their common mean helps one cloud; two stay far from it. Subtract "
        "point from point first"
    )


EXERCISES = [
    Exercise(
        id="2.2-pairwise",
        title="Distances within a budget",
        minutes=8,
        difficulty="medium",
        deliver="all squared distances, shape (N, M), within four times the result's "
        "bytes, and those below 1000 off by at most 0.01",
        reference=answers.pairwise,
        tests=(
            by_definition,
            any_number_of_rows,
            within_budget,
            far_from_the_origin,
            two_clouds,
        ),
        hints=(
            "How many times the result's bytes does `x[:, None] - y` have, and for how "
            "many rows of `x` would it have no more than the result?",
            "Loop over a few rows of `x` at a time, or over the features, and put what "
            "comes out into a result that is allocated once.",
            "`torch.cdist` has a `compute_mode` that subtracts before it squares; mind "
            "what it returns.",
        ),
        why=(
            "Four rows at a time make a temporary of 4 · M · D numbers, twice, beside "
            "the result. Point is subtracted from point, so only small numbers are "
            "squared, wherever the points lie. `torch.cdist(x, y, compute_mode="
            '"donot_use_mm_for_euclid_dist") ** 2` passes too.'
        ),
        wrong=(
            Wrong(answers.three_axes, "has all three axes"),
            Wrong(answers.whole_list, "too many are kept at the same time"),
            Wrong(answers.large_chunks, "the largest has 4.92 MB"),
            Wrong(answers.through_numpy, "NumPy's arrays count as well"),
            Wrong(answers.products, "a square came out negative"),
            Wrong(answers.default_cdist, "or the function you call"),
            Wrong(answers.not_squared, "these are the distances"),
            Wrong(answers.centred, "helps one cloud"),
            Wrong(answers.full_chunks_only, "shorter chunk missing"),
        ),
        variants=(answers.exact_cdist, answers.row_by_row, answers.feature_by_feature),
    )
]
