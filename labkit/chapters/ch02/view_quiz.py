"""The exercise 2.1-view-quiz: ten layouts, and whether `view` works on each."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from labkit.chapters.ch02.strides import called, merged_axes, why_not
from labkit.lesson.exercise import Exercise, Wrong, given

x = torch.arange(24)
LAYOUTS: dict[str, tuple[str, torch.Tensor, tuple[int, ...]]] = {
    "a": ("x.view(4, 6).t()", x.view(4, 6).t(), (24,)),
    "b": ("x.view(1, 24).t()", x.view(1, 24).t(), (24,)),
    "c": ("x.view(4, 6)[:, ::2]", x.view(4, 6)[:, ::2], (12,)),
    "d": ("x.view(4, 6)[:, :3]", x.view(4, 6)[:, :3], (12,)),
    "e": ("x.view(4, 6)[1:3]", x.view(4, 6)[1:3], (12,)),
    "f": ("x.view(4, 6)[::2]", x.view(4, 6)[::2], (12,)),
    "g": (
        "x.view(2, 3, 4).transpose(0, 1)",
        x.view(2, 3, 4).transpose(0, 1),
        (3, 8),
    ),
    "h": (
        "x.view(2, 3, 4).transpose(0, 1)",
        x.view(2, 3, 4).transpose(0, 1),
        (3, 2, 2, 2),
    ),
    "i": ("x.expand(2, 24)", x.expand(2, 24), (48,)),
    "j": ("x.view(4, 6).t()", x.view(4, 6).t(), (2, 3, 4)),
}


def truth(letter: str) -> bool:
    """What PyTorch itself does with this layout."""
    _, y, sizes = LAYOUTS[letter]
    try:
        y.view(sizes)
    except RuntimeError:
        return False
    return True


def reason(letter: str) -> str:
    """Why, in the words of the rule."""
    _, y, sizes = LAYOUTS[letter]
    why = why_not(y, sizes)
    if why:
        return f"it raises: {why}"
    if len(merged_axes(y.shape, y.stride())) == 1:
        walk = "one stride walks through all its values"
    else:
        walk = "no axis of the view needs two axes that do not merge"
    return f"it works: size {tuple(y.shape)}, stride {y.stride()}, and {walk}"


def ten_bools(got: Any) -> dict[str, bool]:
    """The answer by letter, from a dict or from ten in a row."""
    if isinstance(got, list | tuple) and len(got) == len(LAYOUTS):
        got = dict(zip(LAYOUTS, got, strict=True))
    fits = isinstance(got, dict) and set(got) == set(LAYOUTS)
    assert fits, (
        "a dict with the letters a to j, or a list of ten, is wanted; "
        f"{str(got)[:60]!r} came out"
    )
    for letter, says in got.items():
        assert isinstance(says, bool | np.bool_), (
            f"{letter}: True or False is wanted, not {says!r}"
        )
    return {letter: bool(got[letter]) for letter in LAYOUTS}


def ten_answers(answer: Callable[..., Any]) -> None:
    """ten answers, each True or False"""
    ten_bools(given(answer))


def each_layout(answer: Callable[..., Any]) -> None:
    """each layout, against what PyTorch does"""
    for letter, says in ten_bools(given(answer)).items():
        code, _, sizes = LAYOUTS[letter]
        assert says == truth(letter), (
            f"{letter} is the first that is not right, `{code}.{called(sizes)}`: you "
            f"said {says}, but {reason(letter)}"
        )


def view_works() -> dict[str, bool]:
    return {
        "a": False,
        "b": True,
        "c": True,
        "d": False,
        "e": True,
        "f": False,
        "g": False,
        "h": True,
        "i": False,
        "j": True,
    }


def ten_in_a_row() -> list[bool]:
    return [letter in "bcehj" for letter in "abcdefghij"]


def always() -> list[bool]:
    return [True] * 10


def transposed_never() -> dict[str, bool]:
    return view_works() | dict.fromkeys("abghj", False)


def contiguous_only() -> dict[str, bool]:
    return {letter: y.is_contiguous() for letter, (_, y, _) in LAYOUTS.items()}


def slices_always() -> dict[str, bool]:
    return view_works() | dict.fromkeys("cdef", True)


def steps_in_any_axis() -> dict[str, bool]:
    return view_works() | {"f": True}


def expand_is_no_matter() -> dict[str, bool]:
    return view_works() | {"i": True}


def merges_only() -> dict[str, bool]:
    return view_works() | {"j": False}


def only_those_that_work() -> list[str]:
    return list("bcehj")


EXERCISE = Exercise(
    id="2.1-view-quiz",
    title="Will it view?",
    minutes=6,
    difficulty="medium",
    deliver="for each of ten lines, whether it works (True) or raises (False): a dict "
    "from letter to bool, or a list of ten",
    reference=view_works,
    tests=(ten_answers, each_layout),
    hints=(
        "Which strides does the tensor have just before the last `view`?",
        "Write size and stride under each other. Axis i merges with the next where "
        "stride[i] == stride[i+1] * size[i+1]; axes of size 1 do not count.",
        "An axis may always be split. So ask only: does an axis of the view need two "
        "axes that do not merge?",
    ),
    why="`b` has an axis of size 1, which never counts; `c` and `e` have one stride for "
    "all; `h` and `j` only split. In `a`, `d`, `f`, `g` and `i` an axis would need two "
    "that do not merge.",
    wrong=(
        Wrong(always, "a is the first"),
        Wrong(transposed_never, "b is the first"),
        Wrong(contiguous_only, "c is the first"),
        Wrong(slices_always, "d is the first"),
        Wrong(steps_in_any_axis, "f is the first"),
        Wrong(expand_is_no_matter, "i is the first"),
        Wrong(merges_only, "j is the first"),
        Wrong(only_those_that_work, "a dict with the letters a to j"),
    ),
    variants=(ten_in_a_row,),
)
