"""The picture of an autograd graph, drawn in inches on one page."""

import textwrap
from typing import Any

from labkit.chapters.ch03.graph import Graph
from labkit.chapters.ch03.graph_edges import draw_edge, draw_stub, with_ports
from labkit.chapters.ch03.graph_layout import Layout, Place, arrange
from labkit.chapters.ch03.graph_page import (
    BOTTOM,
    INK,
    LEFT,
    LINE,
    LONGEST_STEP,
    LOOKS,
    MOST_LAYERS,
    PAD,
    RED,
    RIGHT,
    SOFT,
    TOP,
    WIDE,
    box_height,
    box_width,
    clipped,
    lines_of,
    look_of,
    text_width,
    write,
)

LEGEND = {
    "plain": "operation",
    "keeps": "keeps memory of its own",
    "leaf": "leaf: its gradient is added here",
    "lost": "not in the graph of y",
}


def message(axes: Any, text: str) -> None:
    """The text where the graph would be."""
    lines = textwrap.fill(text, 66)
    write(
        axes, WIDE / 2, 3.4, lines, ha="center", size=11.5, color=RED, linespacing=1.6
    )


def draw_code(axes: Any, h: str, y: str) -> None:
    """The two lines of code, on top."""
    for row, code in enumerate((h, y)):
        high = 6.6 - 0.24 * row
        write(axes, LEFT + 0.05, high, clipped(code, 88), family="monospace")


def draw_status(axes: Any, text: str, wrong: bool) -> None:
    """One line about the whole graph, under the code."""
    write(axes, LEFT + 0.05, 6.08, text, color=RED if wrong else SOFT)


def draw_graph(axes: Any, graph: Graph, states: dict[str, str], cut_by: str) -> int:
    """Boxes and edges; returns how many nodes there was no room for.

    `states` says by leaf's name what becomes of its gradient.
    """
    texts = {key: lines_of(node, states) for key, node in graph.nodes.items()}
    layout = arrange(
        graph,
        lambda node: box_width(texts[node.key]),
        WIDE - 2 * LEFT,
        MOST_LAYERS,
    )
    heights = [
        max((box_height(texts[p.node.key]) for p in layer if p.node), default=0.2)
        for layer in layout.layers
    ]
    levels = levels_of(
        heights, cut_layers(layout), BOTTOM + 0.3 * bool(layout.left_out)
    )
    rows = list(zip(levels, heights, strict=True))
    for edge, path, shifts in with_ports(layout):
        draw_edge(axes, edge, path, shifts, rows, texts, cut_by)
    for place in {id(stub): stub for stub in layout.stubs}.values():
        draw_stub(axes, place, levels, texts)
    for layer in layout.layers:
        for place in layer:
            if place.node:
                draw_box(axes, place, levels[place.layer], texts[place.node.key])
    return layout.left_out


def cut_layers(layout: Layout) -> set[int]:
    """The layers under which a cut is written."""
    return {path[0].layer for edge, path in layout.paths if edge.kind == "cut"}


def levels_of(heights: list[float], cuts: set[int], bottom: float) -> list[float]:
    """The middle of each layer, from the top; close together where there are many."""
    shares = [1.8 if n in cuts else 1.0 for n in range(len(heights) - 1)]
    free = TOP - bottom - sum(heights)
    unit = min(free / max(sum(shares), 1), LONGEST_STEP - 0.45)
    top = TOP - (free - unit * sum(shares)) * 0.4
    levels = []
    for high, share in zip(heights, [*shares, 0.0], strict=True):
        levels.append(top - high / 2)
        top -= high + unit * share
    return levels


def draw_box(axes: Any, place: Place, level: float, lines: list[str]) -> None:
    from matplotlib.patches import FancyBboxPatch

    assert place.node is not None
    wide, high = place.width, box_height(lines)
    x = LEFT + place.x - wide / 2
    look = look_of(place.node)
    rounded = "round,pad=0,rounding_size=0.09"
    axes.add_patch(
        FancyBboxPatch(
            (x, level - high / 2),
            wide,
            high,
            boxstyle=rounded,
            linewidth=1.3,
            zorder=3,
            **look,
        )
    )
    ink = INK if place.node.reached else SOFT
    for row, line in enumerate(lines):
        y = level + high / 2 - PAD - LINE * (row + 0.5)
        looks: dict[str, Any] = (
            {"size": 9.5, "weight": "bold"} if row == 0 else {"size": 9}
        )
        wrong = row == 2 and place.node.leaf and line != RIGHT
        looks["color"] = RED if wrong else ink
        write(axes, LEFT + place.x, y, line, ha="center", zorder=4, **looks)


def draw_legend(axes: Any, lost: bool) -> None:
    """What the boxes mean, at the bottom."""
    from matplotlib.patches import FancyBboxPatch

    x = LEFT + 0.05
    for kind, words in LEGEND.items():
        if kind == "lost" and not lost:
            continue
        axes.add_patch(
            FancyBboxPatch(
                (x, 0.13),
                0.24,
                0.16,
                boxstyle="round,pad=0,rounding_size=0.05",
                linewidth=1.2,
                **LOOKS[kind],
            )
        )
        write(axes, x + 0.32, 0.21, words, size=9, color=SOFT)
        x += 0.58 + text_width(words, 9, "normal")
