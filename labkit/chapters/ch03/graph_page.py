"""The page that a graph is drawn on, in inches: its looks, and what stands in a box."""

from functools import cache
from math import prod
from typing import TYPE_CHECKING, Any

from labkit.chapters.ch03.graph import Node
from labkit.lesson.costs import size

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDE, HIGH = 7.8, 6.8  # inches
LEFT, TOP, BOTTOM = 0.15, 5.72, 0.55  # where boxes may stand
LINE, PAD = 0.165, 0.09  # a line of text in a box, and the space around them
MOST_LAYERS, LONGEST_STEP = 8, 0.98
INK, SOFT, RED = "#222222", "#6B6B6B", "#B3261E"
RIGHT = "gets its gradient"  # what is said of a leaf where nothing is wrong
# Okabe-Ito, lightened; border, dashes and words tell the same without colour
LOOKS: dict[str, dict[str, Any]] = {
    "plain": {"facecolor": "#EEF2F6", "edgecolor": "#5F7183", "linestyle": "-"},
    "keeps": {"facecolor": "#FBE7C1", "edgecolor": "#A86E00", "linestyle": "-"},
    "leaf": {"facecolor": "#CFEBDF", "edgecolor": "#00694E", "linestyle": "-"},
    "lost": {"facecolor": "#FFFFFF", "edgecolor": "#8A8A8A", "linestyle": (0, (4, 3))},
}
LINES: dict[str, dict[str, Any]] = {
    "kept": {"color": "#44546A", "linestyle": "-", "linewidth": 1.3},
    "cut": {"color": RED, "linestyle": (0, (4, 2)), "linewidth": 1.5},
    "lost": {"color": "#8A8A8A", "linestyle": (0, (1, 2)), "linewidth": 1.3},
}


def page_of(figure: "Figure") -> Any:
    """One set of axes over the whole figure, an inch to the unit."""
    figure.set_layout_engine("none")
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, WIDE), ylim=(0, HIGH))
    axes.set_axis_off()
    return axes


def write(axes: Any, x: float, y: float, text: str, **how: Any) -> None:
    how = {"ha": "left", "va": "center", "size": 10, "color": INK} | how
    axes.text(x, y, text, parse_math=False, **how)


def lines_of(node: Node, states: dict[str, str]) -> list[str]:
    """The text in a node's box, its name first."""
    if node.leaf:
        count = 4 * prod(node.shape)
        said = states.get(node.leaf, "")
        return [node.leaf, f"{node.shape}, {size(count)}", *([said] if said else [])]
    lines = [node.title]
    own = [saved for saved in node.saved if not saved.owner]
    if len(node.saved) > 2:
        lines.append(f"keeps {len(node.saved)} tensors")
        lines.append(size(sum(saved.bytes for saved in own)))
    else:
        for saved in node.saved:
            what = f"= {saved.owner}" if saved.owner else size(saved.bytes)
            lines.append(f"keeps {saved.name} {what}")
    return lines


def look_of(node: Node) -> dict[str, Any]:
    if not node.reached:
        return LOOKS["lost"]
    if node.leaf:
        return LOOKS["leaf"]
    own = any(not saved.owner for saved in node.saved)
    return LOOKS["keeps" if own else "plain"]


def box_width(lines: list[str]) -> float:
    name = text_width(lines[0], 9.5, "bold")
    return max([name, *(text_width(line, 9, "normal") for line in lines[1:])]) + 0.2


def box_height(lines: list[str]) -> float:
    return LINE * len(lines) + 2 * PAD


@cache
def text_width(text: str, points: float, weight: str) -> float:
    """The width of one line of text, in inches."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextPath

    font = FontProperties(weight=weight)
    return TextPath((0, 0), text, size=points, prop=font).get_extents().width / 72


def clipped(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 1]}…"
