"""The explorer of part 3.2: an accumulated gradient beside the big batch's."""

import math
import textwrap
from typing import TYPE_CHECKING, Any

from labkit.chapters.ch03.accumulation import (
    LABELS,
    MEAN,
    NORMS,
    SUM,
    SUM_MEAN,
    TOKENS,
    UNDIVIDED,
    Compared,
    NotThese,
    compared,
    read_sizes,
)
from labkit.lesson.explore import Choice, Explorer, Words

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PAPER = {"facecolor": "white", "edgecolor": "none", "pad": 0.6}  # behind text
SIZE = (7.8, 4.3)  # inches
SAME = 1e-4  # relative error below which the two are called equal: rounding is 1e-7
INK, SOFT, RED = "#222222", "#6B6B6B", "#B3261E"
BIG, OWN = "#56B4E9", "#B8500A"  # Okabe and Ito's sky blue, and a dark vermilion


def draw_accumulation(
    figure: "Figure", sizes: str, weighs: str, targets: str, norm: str
) -> str:
    """Draw what each label weighs, and both gradients as arrows from one point.

    `sizes` is text like "8, 8, 8, 2", `weighs` says how a micro-batch's losses are put
    together, `targets` whether samples are padded, `norm` names a layer.  Returns what
    the picture shows.
    """
    figure.set_layout_engine("none")
    try:
        found = compared(read_sizes(sizes), weighs, norm, targets)
    except NotThese as why:
        text = f"Nothing to draw: {why}."
        figure.text(
            0.5,
            0.5,
            textwrap.fill(text, 60),
            ha="center",
            va="center",
            size=12,
            color=RED,
            linespacing=1.6,
            parse_math=False,
        )
        return text
    headline(figure, found)
    draw_weights(figure.add_axes((0.075, 0.16, 0.38, 0.63)), found)
    draw_arrows(figure.add_axes((0.53, 0.06, 0.45, 0.74)), found)
    return told(found, norm)


def headline(figure: Any, found: Compared) -> None:
    same = found.error < SAME
    mark = "✓" if same else "✗"
    text = f"{mark} error of the accumulated gradient: {percent(found.error)}"
    figure.text(
        0.02, 0.925, text, size=13, weight="bold", color="#00694E" if same else RED
    )
    titles = {
        0.02: "what one label weighs (dashed: in the big batch)",
        0.53: "both gradients, in the plane that holds them",
    }
    for x, title in titles.items():
        figure.text(x, 0.845, title, size=10, color=SOFT)


def draw_weights(axes: Any, found: Compared) -> None:
    """A bar a micro-batch: how much one label of it counts."""
    places = range(1, len(found.shares) + 1)
    wrong = [abs(share - 1) > SAME for share in found.shares]
    bars = axes.bar(
        places,
        found.shares,
        0.7,
        color=[OWN if w else BIG for w in wrong],
        edgecolor=INK,
        linewidth=0.8,
    )
    for bar, w, share in zip(bars, wrong, found.shares, strict=True):
        bar.set_hatch("//" if w else "")
        if len(found.shares) <= 8:
            axes.annotate(
                short(share),
                (bar.get_x() + bar.get_width() / 2, share),
                xytext=(0, 3),
                textcoords="offset points",
                ha="center",
                size=9,
                bbox=PAPER,
            )
    axes.axhline(1, color=INK, linewidth=1, linestyle=(0, (4, 3)))
    top = max(1.0, *found.shares) * 1.28
    axes.set(xlim=(0.4, len(found.shares) + 0.6), ylim=(0, top))
    axes.set_xticks(list(places), [str(n) for n in found.labels])
    axes.set_xlabel("labels in each micro-batch", size=9.5, color=SOFT)
    axes.tick_params(labelsize=9, length=0)
    axes.spines[["top", "right"]].set_visible(False)


def draw_arrows(axes: Any, found: Compared) -> None:
    """Both gradients from one point, and what is between their tips."""
    tip = (found.along, found.across)
    left, right = min(0.0, found.along), max(1.0, found.along)
    reach = max(right - left, found.across, 1.0)
    axes.set(
        xlim=(left - 0.12 * reach, right + 0.16 * reach),
        ylim=(-0.3 * reach, max(found.across, 0.3 * reach) + 0.25 * reach),
    )
    axes.set_aspect("equal", adjustable="box", anchor="C")
    axes.axis("off")
    arrow(axes, (1.0, 0.0), BIG, 6.5, 22)
    arrow(axes, tip, OWN, 1.8, 16)
    if found.error > SAME:
        axes.plot([1, tip[0]], [0, tip[1]], color=RED, lw=1.6, ls=(0, (2, 1.5)))
    down: dict[str, Any] = {
        "textcoords": "offset points",
        "ha": "center",
        "va": "center",
        "size": 9.5,
        "bbox": PAPER,
    }
    axes.annotate("big batch", (0.5, 0), xytext=(0, -17), color="#0072B2", **down)
    flat = found.across < 0.1 * reach
    middle = (tip[0] / 2, tip[1] / 2)
    axes.annotate(
        "accumulated", middle, xytext=(0, 13 if flat else 0), color=OWN, **down
    )


def arrow(
    axes: Any, tip: tuple[float, float], color: str, width: float, head: float
) -> None:
    look = {
        "arrowstyle": "-|>",
        "color": color,
        "linewidth": width,
        "mutation_scale": head,
        "shrinkA": 0,
        "shrinkB": 0,
    }
    axes.annotate("", tip, (0, 0), arrowprops=look)


def told(found: Compared, norm: str) -> str:
    """What the picture shows, in one or two sentences."""
    if found.error < SAME:
        return (
            "The accumulated gradient is that of the big batch, up to rounding: every "
            "label weighs what it weighs there."
        )
    angle = math.degrees(math.atan2(found.across, found.along))
    length = math.hypot(found.along, found.across)
    first = (
        f"The accumulated gradient is {short(length)} times as long as the big batch's "
        f"and {angle:.0f}° off: an error of {percent(found.error)}."
    )
    low, high = min(found.shares), max(found.shares)
    if high - low > SAME:
        return (
            f"{first} A label weighs from {short(low)} to {short(high)} of its due, by "
            "the micro-batch it is in."
        )
    if abs(low - 1) > SAME:
        return f"{first} Every label weighs {short(low)} times its due."
    return (
        f"{first} Every label has its weight; but {norm} took mean and variance from each "
        "micro-batch."
    )


def percent(error: float) -> str:
    return "none beyond rounding" if error < SAME else f"{error:.0%}"


def short(number: float) -> str:
    return f"{number:.2f}" if number < 9.995 else f"{number:.0f}"


EXPLORERS: list[Explorer] = [
    Explorer(
        id="3.2-accumulation",
        draw=draw_accumulation,
        controls={
            "sizes": Words(
                start="8, 8, 8, 2",
                examples=(
                    "8, 8, 8, 8",
                    "16, 16",
                    "2, 2, 2, 2, 2, 2, 2, 2",
                    "1, 31",
                    "32",
                    "8, 0",
                    "eight",
                    "",
                ),
            ),
            "weighs": Choice((MEAN, UNDIVIDED, SUM, SUM_MEAN)),
            "targets": Choice((LABELS, TOKENS)),
            "norm": Choice(NORMS),
        },
        labels={
            "sizes": "micro-batches",
            "weighs": "loss",
            "targets": "labels",
            "norm": "norm layer",
        },
        size=SIZE,
    )
]
