"""The exercises of part 2.1."""

import sys
import tracemalloc
import warnings
from collections.abc import Callable
from functools import wraps
from types import FrameType
from typing import Any

import numpy as np
import torch

from labkit.chapters.ch02 import view_quiz
from labkit.lesson.exercise import Exercise, Wrong, given
from labkit.measure.memory import track_memory

Answer = Callable[..., Any]


def some_arrays(count: int = 3, *shape: int) -> list[np.ndarray]:
    """`count` float32 arrays of one shape, seeded."""
    values = np.random.default_rng(0).random((count, *(shape or (2, 4))))
    return list(values.astype(np.float32))


def one_tensor(answer: Answer) -> None:
    """one float32 tensor with a new first axis, and the arrays' values in order"""
    arrays = some_arrays()
    got = given(answer, arrays)
    assert isinstance(got, torch.Tensor), (
        f"a tensor is wanted, not this {type(got).__name__}"
    )
    assert tuple(got.shape) == (3, 2, 4), (
        f"three arrays of shape (2, 4) make shape (3, 2, 4); yours is "
        f"{tuple(got.shape)}: where did the new first axis go?"
    )
    assert got.dtype == torch.float32, (
        f"float32 is wanted, and {str(got.dtype).removeprefix('torch.')} came out"
    )
    for n, array in enumerate(arrays):
        assert np.array_equal(got[n].numpy(), array), f"row {n} is not array {n}"


def owns_its_data(answer: Answer) -> None:
    """the tensor owns its data, also where there is only one array"""
    for count in (1, 3):
        received: list[np.ndarray] = []
        before = np.stack(some_arrays(count))
        got = given(keeping(answer, received), some_arrays(count))
        for array in received:
            array[:] = -1
        assert np.array_equal(got.numpy(), before), (
            f"for a list of {count}, a later write to an array changed the batch: who "
            "owns its memory?"
        )


def keeping(answer: Answer, received: list[np.ndarray]) -> Answer:
    """The answer, with a note of the very arrays that it is given."""

    def kept(arrays: list[np.ndarray]) -> Any:
        received.extend(arrays)
        return answer(arrays)

    return kept


def in_blocks(answer: Answer) -> None:
    """the data is copied in blocks"""
    always = torch.is_warn_always_enabled()
    torch.set_warn_always(True)  # this warning is given once per process otherwise
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            given(answer, some_arrays())
    finally:
        torch.set_warn_always(always)
    said = [str(w.message) for w in caught if "list of numpy" in str(w.message)]
    assert not said, (
        "PyTorch took the list apart value by value, and warned about it: who can turn "
        "a list of arrays into one array first?"
    )
    steps, values = python_steps(answer, some_arrays(8, 32, 32)), 8 * 32 * 32
    assert steps < values / 2, (
        f"Python took {steps:,} steps of its own for {values:,} values, so it walked "
        "through the numbers one at a time: which call takes a whole array at once?"
    )


def python_steps(answer: Answer, arrays: list[np.ndarray]) -> int:
    """How many lines of Python the answer runs, those of what it calls included."""
    steps = 0

    def count(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal steps
        steps += 1
        return count

    @wraps(answer)
    def traced(arrays: list[np.ndarray]) -> Any:
        before = sys.gettrace()
        sys.settrace(count)
        try:
            return answer(arrays)
        finally:
            sys.settrace(before)

    given(traced, arrays)
    return steps


def one_copy(answer: Answer) -> None:
    """the data is copied once, by the bytes that NumPy and PyTorch take"""
    arrays = some_arrays(64, 64, 64)
    data = sum(array.nbytes for array in arrays)
    taken = {}

    def counted(arrays: list[np.ndarray]) -> Any:
        tracemalloc.start()  # NumPy reports its memory to it
        try:
            with track_memory() as memory:
                got = answer(arrays)
            taken["numpy"] = tracemalloc.get_traced_memory()[1] / data
            taken["torch"] = memory.peak_bytes / data
        finally:
            tracemalloc.stop()
        return got

    given(counted, arrays)
    numpy, torch_ = taken["numpy"], taken["torch"]
    assert numpy < 3, (
        f"NumPy and Python needed {numpy:.0f} times the data's bytes: every value became "
        "a Python number on the way"
    )
    assert numpy + torch_ < 1.5, (
        f"the data was copied {numpy + torch_:.0f} times ({numpy:.0f} by NumPy, "
        f"{torch_:.0f} by PyTorch): which call could share instead of copying again?"
    )


def batch(arrays: list[np.ndarray]) -> torch.Tensor:
    return torch.from_numpy(np.stack(arrays))


def batch_stacking_tensors(arrays: list[np.ndarray]) -> torch.Tensor:
    return torch.stack([torch.from_numpy(array) for array in arrays])


def batch_filling(arrays: list[np.ndarray]) -> torch.Tensor:
    out = torch.empty(len(arrays), *arrays[0].shape)
    for row, array in zip(out, arrays, strict=True):
        row.copy_(torch.from_numpy(array))
    return out


def batch_copied_again(arrays: list[np.ndarray]) -> torch.Tensor:
    return torch.tensor(np.stack(arrays))


def batch_of_copies(arrays: list[np.ndarray]) -> torch.Tensor:
    return torch.stack([torch.tensor(array) for array in arrays])


def batch_value_by_value(arrays: list[np.ndarray]) -> torch.Tensor:
    return torch.tensor(arrays)


def batch_through_lists(arrays: list[np.ndarray]) -> torch.Tensor:
    return torch.tensor([array.tolist() for array in arrays])


def batch_in_a_loop(arrays: list[np.ndarray]) -> torch.Tensor:
    out = np.empty((len(arrays), *arrays[0].shape), np.float32)
    for n, array in enumerate(arrays):
        for place in np.ndindex(array.shape):
            out[n][place] = array[place]
    return torch.from_numpy(out)


def batch_joined(arrays: list[np.ndarray]) -> torch.Tensor:
    return torch.from_numpy(np.concatenate(arrays))


def batch_of_doubles(arrays: list[np.ndarray]) -> torch.Tensor:
    return torch.from_numpy(np.array(arrays, dtype=float))


def batch_that_shares_one(arrays: list[np.ndarray]) -> torch.Tensor:
    if len(arrays) == 1:
        return torch.from_numpy(arrays[0]).unsqueeze(0)
    return torch.from_numpy(np.stack(arrays))


EXERCISES: list[Exercise] = [
    Exercise(
        id="2.1-batch",
        title="One copy",
        minutes=6,
        difficulty="easy",
        deliver="one float32 tensor with a new first axis, made from a list of float32 "
        "arrays with one copy, in blocks, that owns its data",
        reference=batch,
        tests=(in_blocks, one_tensor, owns_its_data, one_copy),
        hints=(
            "Which calls of this part share memory, and which always copy?",
            "Somebody must put the arrays into one block: that is the one copy. NumPy "
            "can do it, and PyTorch can share what NumPy made.",
            "`np.stack` makes one array with a new first axis.",
        ),
        why="`np.stack` copies once, block by block, and `from_numpy` shares its result: "
        "nobody else holds that array, so nobody can change the batch.",
        wrong=(
            Wrong(batch_copied_again, "(1 by NumPy, 1 by PyTorch)"),
            Wrong(batch_of_copies, "(0 by NumPy, 2 by PyTorch)"),
            Wrong(batch_value_by_value, "value by value"),
            Wrong(batch_through_lists, "every value became a Python number"),
            Wrong(batch_in_a_loop, "Python took"),
            Wrong(batch_joined, "where did the new first axis go"),
            Wrong(batch_of_doubles, "float32 is wanted"),
            Wrong(batch_that_shares_one, "who owns its memory"),
        ),
        variants=(batch_stacking_tensors, batch_filling),
    ),
    view_quiz.EXERCISE,
]
