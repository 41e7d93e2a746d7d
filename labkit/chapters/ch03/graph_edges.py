"""The edges of a drawn graph: curves from box to box, and where they are cut."""

from itertools import pairwise
from typing import Any

from labkit.chapters.ch03.graph import Edge
from labkit.chapters.ch03.graph_layout import Layout, Place
from labkit.chapters.ch03.graph_page import LEFT, LINES, RED, SOFT, box_height, write


def with_ports(layout: Layout) -> list[tuple[Edge, list[Place], tuple[float, float]]]:
    """Each edge with how far from a box's middle it leaves and arrives.

    Edges at one box are sorted by where they come from or go to, so they do not cross.
    """
    leaving: dict[int, list[int]] = {}
    arriving: dict[int, list[int]] = {}
    for n, (_, path) in enumerate(layout.paths):
        leaving.setdefault(id(path[0]), []).append(n)
        arriving.setdefault(id(path[-1]), []).append(n)
    out: dict[int, float] = {}
    into: dict[int, float] = {}
    for ports, sides, end, near in ((leaving, out, 0, 1), (arriving, into, -1, -2)):
        for numbers in ports.values():
            numbers.sort(key=lambda n: layout.paths[n][1][near].x)
            place = layout.paths[numbers[0]][1][end]
            step = min(0.3, place.width * 0.7 / len(numbers))
            for k, n in enumerate(numbers):
                sides[n] = (k - (len(numbers) - 1) / 2) * step
    return [(e, p, (out[n], into[n])) for n, (e, p) in enumerate(layout.paths)]


def draw_edge(
    axes: Any,
    edge: Edge,
    path: list[Place],
    shifts: tuple[float, float],
    rows: list[tuple[float, float]],
    texts: dict[int, list[str]],
    cut_by: str,
) -> None:
    """A curve from box to box, through the bends; with an arrow where gradient flows.

    `rows` holds the middle and the height of each layer; an edge passes it upright.
    """
    from matplotlib.patches import FancyArrowPatch
    from matplotlib.path import Path

    first, last = path[0], path[-1]
    points = [
        (
            LEFT + first.x + shifts[0],
            rows[first.layer][0] - box_height(texts[edge.start]) / 2,
        )
    ]
    for bend in path[1:-1]:
        level, high = rows[bend.layer]
        points += [(LEFT + bend.x, level + high / 2), (LEFT + bend.x, level - high / 2)]
    points.append(
        (
            LEFT + last.x + shifts[1],
            rows[last.layer][0] + box_height(texts[edge.end]) / 2,
        )
    )
    vertices, codes = [points[0]], [Path.MOVETO]
    for (x0, y0), (x1, y1) in pairwise(points):
        lean = (y0 - y1) * 0.5
        vertices += [(x0, y0 - lean), (x1, y1 + lean), (x1, y1)]
        codes += [Path.CURVE4] * 3
    arrow = "-|>,head_length=5,head_width=2.6" if edge.kind == "kept" else "-"
    axes.add_patch(
        FancyArrowPatch(
            path=Path(vertices, codes), arrowstyle=arrow, zorder=2, **LINES[edge.kind]
        )
    )
    if edge.kind == "cut":
        (x0, y0), (x1, y1) = points[0], points[1]
        label = {"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": RED}
        write(
            axes,
            (x0 + x1) / 2,
            (y0 + y1) / 2,
            f"✂ {cut_by}",
            ha="center",
            size=9,
            color=RED,
            bbox=label,
            zorder=5,
        )


def draw_stub(
    axes: Any, place: Place, levels: list[float], texts: dict[int, list[str]]
) -> None:
    """Below a box whose edge leads to what is left out."""
    assert place.node is not None
    low = levels[place.layer] - box_height(texts[place.node.key]) / 2
    x = LEFT + place.x + (place.width * 0.36 if place.below else 0)
    axes.plot([x, x], [low - 0.02, low - 0.17], zorder=2, **LINES["lost"])
    if not place.below:
        write(axes, x, low - 0.24, "…", ha="center", color=SOFT)
