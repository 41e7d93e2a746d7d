"""The explorer of part 7.1: a checkpoint beside the model that it is loaded into."""

from typing import TYPE_CHECKING, Any

from labkit.chapters.ch07.diff_models import (
    DROPPED,
    FIRST,
    KEPT,
    LOADED,
    OVERWRITTEN,
    PLAIN,
    SAVED,
    SHAPE,
    THROUGH,
    TIED,
    UNEXPECTED,
    Key,
    Outcome,
    loaded,
)
from labkit.lesson.explore import Choice, Explorer

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIZE = (7.8, 3.9)  # inches
INK, SOFT = "#222222", "#6B6B6B"
GREEN, ORANGE, RED = "#00694E", "#9A4A00", "#B3261E"
LOOKS = {  # of a fate: mark, colour of the text, fill of the box
    LOADED: ("✓", GREEN, "#D9F0E6"),
    THROUGH: ("✓", GREEN, "#D9F0E6"),
    KEPT: ("○", ORANGE, "#FCE9D2"),
    UNEXPECTED: ("○", ORANGE, "#FCE9D2"),
    DROPPED: ("○", SOFT, "#EEEEEE"),
    SHAPE: ("✗", RED, "#F9DEDC"),
    OVERWRITTEN: ("✗", RED, "#F9DEDC"),
}
TOP, ROW, HIGH = 0.705, 0.128, 0.092  # of the first box, from box to box, of a box
LEFT, RIGHT = (0.15, 0.465), (0.555, 0.795)  # the two columns of boxes


def draw_diff(
    figure: "Figure", saved: str, model: str, first: str, strict: bool
) -> str:
    """Draw the names of a checkpoint and of a model, and what a load did to each.

    `saved` is a checkpoint, `model` what it is loaded into, `first` what is done before,
    `strict` is that of `load_state_dict`.  Returns what the picture shows.
    """
    figure.set_layout_engine("none")
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, 1), ylim=(0, 1))
    axes.axis("off")
    found = loaded(saved, model, first, strict)
    headline(axes, found)
    places = {key.name: row for row, key in enumerate(found.model)}
    for row, key in enumerate(found.saved):
        box(axes, key, row, LEFT)
        if key.fate != LOADED:
            fate(axes, key, row, LEFT[0] - 0.012, "right")
        if key.fate in (LOADED, SHAPE):
            line(axes, row, places[key.name], key.fate)
    for row, key in enumerate(found.model):
        box(axes, key, row, RIGHT)
        fate(axes, key, row, RIGHT[1] + 0.012, "left")
    return told(found)


def headline(axes: Any, found: Outcome) -> None:
    """Whether it raised, and how much of the model is what was saved."""
    share = f"{found.good} of {len(found.model)} tensors loaded"
    if found.complaints:
        text, color = f"✗ it raises, with {share}", RED
    elif unsaid(found):
        text, color = f"○ it returns without a word, with {share}", ORANGE
    else:
        text, color = f"✓ it returns, with {share}", GREEN
    axes.text(0.02, 0.93, text, size=13, weight="bold", color=color, va="center")
    for x, title in ((LEFT[0], "the checkpoint"), (RIGHT[0], "the model, afterwards")):
        axes.text(x, 0.838, title, size=10, color=SOFT, va="center")


def box(axes: Any, key: Key, row: int, column: tuple[float, float]) -> None:
    """A name and its shape."""
    from matplotlib.patches import Rectangle

    left, right = column
    middle = TOP - row * ROW + HIGH / 2
    fill = LOOKS[key.fate][2]
    axes.add_patch(
        Rectangle(
            (left, middle - HIGH / 2), right - left, HIGH, fc=fill, ec=INK, lw=0.8
        )
    )
    shape = "×".join(map(str, key.shape))
    style = {"size": 9.5, "va": "center", "family": "DejaVu Sans Mono"}
    axes.text(left + 0.01, middle, key.name, color=INK, ha="left", **style)
    axes.text(right - 0.01, middle, shape, color=SOFT, ha="right", **style)


def fate(axes: Any, key: Key, row: int, x: float, side: str) -> None:
    mark, color, _ = LOOKS[key.fate]
    middle = TOP - row * ROW + HIGH / 2
    text = f"{mark} {key.fate}"
    axes.text(x, middle, text, size=9.5, color=color, ha=side, va="center")


def line(axes: Any, row: int, place: int, fate: str) -> None:
    """From a name to the same name on the other side."""
    ends = [TOP - n * ROW + HIGH / 2 for n in (row, place)]
    dashes = "-" if fate == LOADED else (0, (2, 1.5))
    axes.plot([LEFT[1], RIGHT[0]], ends, color=LOOKS[fate][1], lw=1.6, ls=dashes)


def told(found: Outcome) -> str:
    """What the picture shows, in one or two sentences."""
    total, share = len(found.model), f"{found.good} of {len(found.model)} tensors"
    if found.complaints:
        first = (
            f"It raises: {joined(found.complaints)}; by then {share} have been loaded."
        )
    elif unsaid(found):
        first = f"It returns without a word, and {share} are loaded."
    else:
        first = f"It returns, and all {total} tensors of the model are what was saved."
    kept = [key.name for key in found.model if key.fate in (KEPT, SHAPE)]
    fates = {key.fate for key in found.model}
    more = []
    if len(kept) == total:
        more.append("nothing has changed")
    elif kept:
        more.append(f"{joined(kept)} {'is' if len(kept) == 1 else 'are'} as before")
    if OVERWRITTEN in fates:
        more.append("embed.weight and out.weight are one tensor, and the last one wins")
    if THROUGH in fates:
        more.append("out.weight is the same tensor as embed.weight, which was loaded")
    second = "; ".join(more)
    return f"{first} In the model, {second}." if more else first


def unsaid(found: Outcome) -> bool:
    """Whether it returned although not all of either side was used."""
    used = all(key.fate == LOADED for key in found.saved)
    return not found.complaints and not (used and found.good == len(found.model))


def joined(names: list[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if names[1:] else names)


EXPLORERS: list[Explorer] = [
    Explorer(
        id="7.1-diff",
        draw=draw_diff,
        controls={
            "saved": Choice(SAVED),
            "model": Choice((PLAIN, TIED)),
            "first": Choice(FIRST),
            "strict": Choice((True, False)),
        },
        labels={
            "saved": "checkpoint",
            "model": "model",
            "first": "before loading",
            "strict": "strict",
        },
        size=SIZE,
    )
]
