"""The picture of two shapes under one operation: boxes for axes, bars for bytes."""

import math
import textwrap
from typing import Any

from labkit.chapters.ch02.broadcasting import FAILS, Axis, Bytes, Shape, text_of
from labkit.lesson.costs import size

INK, SOFT, WRONG = "#222222", "#6B6B6B", "#B04A00"
LEFT = 0.19  # of the figure: where boxes and bars begin
# Okabe-Ito, lightened; border and text tell the same without colour
LOOKS: dict[str, dict[str, Any]] = {
    "real": {"facecolor": "#D6EAF5", "edgecolor": "#0072B2", "linestyle": "-"},
    "stretched": {"facecolor": "#FBE7C1", "edgecolor": "#B87A00", "linestyle": "--"},
    "summed": {"facecolor": "#F3DDE9", "edgecolor": "#A0487E", "linestyle": ":"},
    "wrong": {"facecolor": "#F8D9CC", "edgecolor": "#D55E00", "linestyle": "-"},
}
BARS = {  # what is counted: colour and hatch
    "a": ("#CCCCCC", ""),
    "b": ("#CCCCCC", ""),
    "result": ("#56B4E9", ""),
    "forward, peak": ("#E69F00", "//"),
    "kept for backward": ("#F0E442", ".."),
    "backward, peak": ("#009E73", "\\\\"),
}
WORDS = {"a cannot grow": "must grow", "rows clash": "rows", "columns clash": "columns"}
HELP = "Type sizes with commas, like 1000, 1; nothing at all is a single number."


def costs(taken: Bytes) -> str:
    """What the bars show, in one sentence."""
    kept = f"{size(taken.kept)} more stays" if taken.kept else "nothing more stays"
    return (
        f"The forward takes {size(taken.forward)} at its peak"
        f"{times(taken.forward, taken.result)}, {kept} for the backward, and the "
        f"backward takes {size(taken.backward)}{times(taken.backward, taken.result)}."
    )


def times(count: int, result: int) -> str:
    """How many results that is, in brackets; nothing where it is next to none."""
    if count < 0.01 * result or not result:
        return ""
    return f" ({count / result:.3g} × the result)"


def message(picture: Any, text: str, help: str = "") -> None:
    """The text in place of a picture, and how to type a shape."""
    looks = {"transform": picture.transAxes, "ha": "center", "linespacing": 1.6}
    lines = "\n".join(textwrap.wrap(text, 66))
    picture.axis("off")
    picture.text(
        0.5, 0.52, lines, va="bottom", size=11, color=WRONG, parse_math=False, **looks
    )
    picture.text(0.5, 0.44, help, va="top", size=10, color=SOFT, **looks)


def draw_axes(
    picture: Any, columns: list[Axis], a: Shape, b: Shape, result: Shape | None
) -> None:
    """Three rows of boxes, aligned at the right: a, b, and what comes out."""
    picture.axis("off")
    picture.set(xlim=(-LEFT * 8.6, (1 - LEFT) * 8.6), ylim=(3.3, -0.55))
    for y, (name, shape) in enumerate((("a", a), ("b", b), ("result", result))):
        picture.text(-0.15, y, name, ha="right", va="center", size=10, color=INK)
        if len(columns) < 6:
            said = missing(columns) if shape is None else text_of(shape)
            picture.text(
                len(columns) + 0.08,
                y,
                said if len(said) < 40 else f"{said[:38]}…",
                va="center",
                size=9,
                color=WRONG if shape is None else SOFT,
            )
    for x, axis in enumerate(columns):
        for y, (text, look) in enumerate(boxes(axis)):
            box(picture, x, y, text, LOOKS[look])
        fails = axis.fate in FAILS
        picture.text(
            x + 0.46,
            2.78,
            WORDS.get(axis.fate, axis.fate),
            ha="center",
            va="center",
            size=9,
            color=WRONG if fails else SOFT,
            weight="bold" if fails else "normal",
        )


def missing(columns: list[Axis]) -> str:
    """Why there is no result: what the picture says in its place."""
    if columns[-1].fate != "columns clash":
        return "does not exist"
    return f"does not exist: Σ {columns[-1].left} ≠ Σ {columns[-2].right}"


def boxes(axis: Axis) -> list[tuple[str, str]]:
    """Text and look of the three boxes of one axis: a, b, result."""
    m, n = axis.left, axis.right
    if axis.fate.startswith(("rows", "columns")):
        return product_boxes(axis)
    if axis.fate == "clash":
        return [
            (short(m), "wrong"),
            (short(n), "wrong"),
            (f"{short(m)} ≠ {short(n)}", "wrong"),
        ]
    left, right = operand(m, n), operand(n, m)
    if axis.fate == "a cannot grow":
        return [("–" if m is None else short(m), "wrong"), right, (left[0], "wrong")]
    return [left, right, (short(n if axis.fate == "a stretches" else m), "real")]


def product_boxes(axis: Axis) -> list[tuple[str, str]]:
    """The last two axes of a matrix product: one side is summed away, one stays."""
    summed = "wrong" if axis.fate in FAILS else "summed"
    stays, gone = (
        (axis.left, axis.right)
        if axis.fate.startswith("rows")
        else (axis.right, axis.left)
    )
    kept = ("(1)", "stretched") if stays is None else (short(stays), "real")
    out = ("dropped", "stretched") if stays is None else kept
    sides = [kept, (f"Σ {short(gone)}", summed)]
    return [*(sides if axis.fate.startswith("rows") else reversed(sides)), out]


def operand(own: int | None, other: int | None) -> tuple[str, str]:
    """One operand's box: its size, or the size it is stretched to."""
    if own is None:
        return f"– → {short(other)}", "stretched"
    if own == 1 and other not in (None, 1):
        return f"1 → {short(other)}", "stretched"
    return short(own), "real"


def short(n: int | None) -> str:
    """A size in at most six characters."""
    return str(n) if n is None or n < 1_000_000 else f"{n:.1g}".replace("e+0", "e")


def box(picture: Any, x: float, y: float, text: str, look: dict[str, Any]) -> None:
    from matplotlib.patches import Rectangle

    picture.add_patch(Rectangle((x, y - 0.37), 0.92, 0.74, linewidth=1.4, **look))
    fits = 10 if len(text) < 10 else 9
    picture.text(x + 0.46, y, text, ha="center", va="center", size=fits, color=INK)


def draw_bars(picture: Any, a: Shape, b: Shape, taken: Bytes) -> None:
    """Bytes of the operands, of the result, and of what was allocated on the way."""
    counts = [4 * math.prod(a), 4 * math.prod(b), taken.result]
    counts += [taken.forward, taken.kept, taken.backward]
    for y, ((colour, hatch), count) in enumerate(
        zip(BARS.values(), counts, strict=True)
    ):
        picture.barh(
            y, count, 0.66, color=colour, hatch=hatch, edgecolor="#444444", lw=0.8
        )
        note = size(count) + (times(count, taken.result) if y > 2 else "")
        picture.annotate(
            note,
            (count, y),
            xytext=(6, 0),
            textcoords="offset points",
            va="center",
            size=10,
            color=INK,
        )
    if taken.result:
        picture.axvline(taken.result, color=SOFT, lw=1, ls=":", zorder=0)
    picture.set(xlim=(0, max(*counts, 1) * 1.45), ylim=(5.6, -0.6), xticks=[])
    picture.set_yticks(range(len(BARS)), list(BARS))
    picture.tick_params(axis="y", length=0, labelsize=10, labelcolor=INK)
    picture.spines[["top", "right", "bottom"]].set_visible(False)
