"""The explorers of part 2.1."""

from typing import TYPE_CHECKING

import torch

from labkit.chapters.ch02.strides import (
    STEPS,
    Chain,
    called,
    fill_sizes,
    merged_axes,
    read_sizes,
    run_chain,
    why_not,
)
from labkit.chapters.ch02.strides_picture import (
    draw_refusal,
    draw_values,
    draw_view,
    message,
    page_of,
)
from labkit.chapters.ch02.strides_rows import draw_axes, draw_memory
from labkit.lesson.evidence import LabError
from labkit.lesson.explore import Choice, Explorer, Words

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_VALUES, MOST_AXES = 24, 4
SIZE = (7.8, 6.14)  # inches


def draw_strides(
    figure: "Figure", shape: str, first: str, second: str, third: str, view: str
) -> str:
    """Draw the values, the axes and the memory of a chain of steps, and a `view` of it.

    `shape` is text like "3, 4", `first` to `third` are keys of STEPS, `view` is what
    the learner asks `view` for.  Returns what the picture shows.
    """
    axes = page_of(figure, SIZE)
    try:
        chain = run_chain([int(n) for n in shape.split(",")], [first, second, third])
        y = chain.y
        if y.numel() > MOST_VALUES or y.dim() > MOST_AXES:
            raise LabError(
                f"this picture has room for {MOST_VALUES} values on {MOST_AXES} axes, "
                f"and {chain.code} has {y.numel()} on {y.dim()}; take out a step"
            )
    except LabError as error:
        return message(axes, f"Nothing to draw: {error}.", *SIZE)
    draw_values(axes, chain)
    draw_memory(axes, chain)
    asked: tuple[int, ...] | None = None
    try:
        asked = read_sizes(view)
        target = fill_sizes(asked, y.numel())
    except LabError as error:
        draw_axes(axes, y, None)
        call = called(asked) if asked else "view(...)"
        draw_refusal(axes, call, "raises" if asked else "not drawn", f"{error}.")
        return f"{about(chain)} No view: {error}."
    draw_axes(axes, y, target)
    why = why_not(y, target)
    if why:
        copies = f"reshape({called(asked)[5:-1]}) would copy."
        draw_refusal(
            axes, called(asked), "raises", f"{why[0].upper()}{why[1:]}.\n{copies}"
        )
        return f"{about(chain)} {called(asked)} raises: {why}. {copies}"
    draw_view(axes, called(asked), y.view(target))
    return f"{about(chain)} {called(asked)} works: {how(y, target)}."


def about(chain: Chain) -> str:
    """One sentence about the tensor."""
    y = chain.y
    layout = "contiguous" if y.is_contiguous() else "not contiguous"
    memory = f"new memory from {chain.copied_by}" if chain.copied_by else "memory of x"
    return (
        f"y = {chain.code} has shape {tuple(y.shape)}, stride {y.stride()} and offset "
        f"{y.storage_offset()}: {layout}, {memory}."
    )


def how(y: torch.Tensor, target: tuple[int, ...]) -> str:
    """Why the view works, in the words of the rule."""
    if len(merged_axes(y.shape, y.stride())) > 1:
        why = "no axis of it crosses a wall"
    else:
        why = "there is no wall in y"
    return f"{why}, and its stride is {y.view(target).stride()}"


OTHERS = tuple(STEPS)
FIRST = ("transpose(0, 1)", *(step for step in OTHERS if step != "transpose(0, 1)"))

EXPLORERS: list[Explorer] = [
    Explorer(
        id="2.1-strides",
        draw=draw_strides,
        controls={
            "shape": Choice(("3, 4", "2, 2, 3", "2, 3, 4", "2, 6", "12", "4, 1")),
            "first": Choice(FIRST),
            "second": Choice(OTHERS),
            "third": Choice(OTHERS),
            "view": Words(
                start="-1",
                examples=("2, 6", "4, 3", "2, 2, 3", "1, -1", "5, 5", "-1, -1", "two"),
            ),
        },
        labels={
            "shape": "shape of x",
            "first": "then",
            "second": "then",
            "third": "then",
            "view": "view",
        },
        size=SIZE,
    )
]
