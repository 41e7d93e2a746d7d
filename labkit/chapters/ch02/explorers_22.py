"""The explorer of part 2.2: two shapes under one operation, axis by axis and in bytes."""

from typing import Any

from labkit.chapters.ch02.broadcast_picture import (
    HELP,
    LEFT,
    costs,
    draw_axes,
    draw_bars,
    message,
)
from labkit.chapters.ch02.broadcasting import (
    OPERATIONS,
    Refused,
    affordable,
    axes,
    measure,
    parse,
    shape_of,
    text_of,
)
from labkit.lesson.costs import size
from labkit.lesson.explore import Choice, Explorer, Words


def broadcast(figure: Any, a: str, b: str, operation: str) -> str:
    """Draw what becomes of each axis of a and b, and the bytes that it takes."""
    figure.set_layout_engine("none")  # fixed places: nothing jumps on a change
    try:
        left, right = parse(a, "a"), parse(b, "b")
        columns = axes(left, right, operation)
    except Refused as refusal:
        message(figure.add_axes((0, 0, 1, 1)), str(refusal), HELP)
        return str(refusal)
    above = figure.add_axes((0, 0.55, 1, 0.43))
    below = figure.add_axes((LEFT, 0.02, 0.98 - LEFT, 0.49))
    says = f"a {text_of(left)} and b {text_of(right)} under {operation}"
    result = shape_of(columns)
    draw_axes(above, columns, left, right, result)
    try:
        affordable(left, right, operation)
    except Refused as refusal:
        message(below, str(refusal))
        return f"{says}: {refusal}"
    taken = measure(left, right, operation)
    assert result is not None  # affordable refused what does not fit
    draw_bars(below, left, right, taken)
    return f"{says} give {text_of(result)}, {size(taken.result)}. {costs(taken)}"


EXPLORERS = [
    Explorer(
        id="2.2-broadcast",
        draw=broadcast,
        controls={
            "a": Words(
                "1000, 1",
                (
                    "",
                    "3",
                    "3, 4",
                    "(2, 1, 4)",
                    "[1797, 1]",
                    "500, 1, 64",
                    "32, 1, 128, 128",
                    "0, 3",
                    "1, 1, 1, 1, 1, 1",
                    "three",
                    "-2, 3",
                    "2.5",
                    "100000, 100000",
                    "400, 25, 1, 100",
                ),
            ),
            "b": Words(
                "1, 1000",
                (
                    "",
                    "4",
                    "3, 1",
                    "1797",
                    "500 64",
                    "8, 128, 128",
                    "128, 128",
                    "1x4",
                    "25, 100, 100",
                    "0",
                    "2,,3",
                    "1, 2, 3, 4, 5, 6, 7",
                    "9" * 40,
                    "²",
                ),
            ),
            "operation": Choice(tuple(OPERATIONS)),
        },
        labels={"a": "shape of a", "b": "shape of b", "operation": "operation"},
        size=(7.2, 4.6),
    ),
]
