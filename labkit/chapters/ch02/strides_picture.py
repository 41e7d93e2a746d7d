"""The picture of a tensor's values and of a view of it, drawn in inches on one page."""

import textwrap
from typing import TYPE_CHECKING, Any

import torch

from labkit.chapters.ch02.strides import Chain

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INK, FAINT, PAPER, RED = "#222222", "#8a8a8a", "#eef2f6", "#B3261E"
# Okabe and Ito's colours, dark enough for text on white; dashes say the same again
COLOURS = ("#B8500A", "#0072B2", "#00795A", "#A8508A")
DASHES: tuple[Any, ...] = ((0, (4, 2)), "solid", (0, (1, 1.5)), (0, (5, 2, 1, 2)))
LEFT, MIDDLE, RIGHT = 0.25, 4.3, 7.6
TITLE, FACTS, GRID_TOP, GRID_HEIGHT = 5.92, 5.67, 5.3, 1.72
RULE, UPPER, LOWER, BAR = 3.05, 2.32, 1.81, 0.38  # the rows of axes, and their height
WALK, CELLS, CELL = 1.52, 0.74, 0.3  # the memory, and the height of its cells


def page_of(figure: "Figure", size: tuple[float, float]) -> Any:
    """One set of axes over the whole figure, an inch to the unit."""
    figure.set_layout_engine("none")
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, size[0]), ylim=(0, size[1]))
    axes.set_axis_off()
    return axes


def message(axes: Any, text: str, width: float, height: float) -> str:
    """Write `text` where the picture would be, and return it."""
    lines = textwrap.fill(text, 60)
    write(axes, width / 2, height / 2, lines, ha="center", size=12)
    return text


def write(axes: Any, x: float, y: float, text: str, **how: Any) -> None:
    how = {"ha": "left", "va": "center", "size": 10, "color": INK} | how
    axes.text(x, y, text, parse_math=False, **how)


def box(axes: Any, x: float, y: float, wide: float, high: float, **how: Any) -> None:
    from matplotlib.patches import Rectangle

    look: dict[str, Any] = {"facecolor": "white", "edgecolor": FAINT, "linewidth": 0.8}
    axes.add_patch(Rectangle((x, y), wide, high, **look | how))


def arrow(axes: Any, start: Any, end: Any, axis: int, **how: Any) -> None:
    """An arrow in the colour and the dashes of one axis."""
    how = {"arrowstyle": "-|>", "mutation_scale": 8, "linewidth": 1.1} | how
    look = {
        "color": COLOURS[axis],
        "linestyle": DASHES[axis],
        "shrinkA": 0,
        "shrinkB": 0,
    }
    axes.annotate("", end, start, arrowprops=look | how)


def draw_values(axes: Any, chain: Chain) -> None:
    """Left: the values as indexing gives them."""
    y = chain.y
    code = f"y = {chain.code}"
    write(axes, LEFT, TITLE, code, family="monospace", weight="bold")
    write(axes, LEFT, FACTS, f"shape {tuple(y.shape)}, stride {y.stride()}")
    draw_grid(axes, y, LEFT + 0.35, MIDDLE - LEFT - 0.75, arrows=True)


def draw_refusal(axes: Any, call: str, verdict: str, why: str) -> None:
    """Right: the verdict, and why there is no such view."""
    write(axes, MIDDLE, TITLE, f"y.{call}", family="monospace", weight="bold")
    write(axes, MIDDLE, FACTS, f"✗ {verdict}", color=RED)
    text = "\n\n".join(textwrap.fill(part, 42) for part in why.split("\n"))
    write(axes, MIDDLE, GRID_TOP, text, va="top", linespacing=1.4)


def draw_view(axes: Any, call: str, result: torch.Tensor) -> None:
    """Right: the values of the view."""
    write(axes, MIDDLE, TITLE, f"y.{call}", family="monospace", weight="bold")
    facts = f"✓ works, with stride {result.stride()}"
    write(axes, MIDDLE, FACTS, facts, color=COLOURS[2])
    if result.dim() > 4:
        write(axes, MIDDLE, GRID_TOP - 0.2, "(five axes or more: not drawn)")
        return
    draw_grid(axes, result, MIDDLE, RIGHT - MIDDLE, arrows=False)


def draw_grid(
    axes: Any, x: torch.Tensor, left: float, room: float, arrows: bool
) -> None:
    """Blocks of rows and columns: the last two axes in a block, the others across."""
    sizes = (1,) * (4 - x.dim()) + tuple(x.shape)
    down, across, rows, columns = sizes
    gap = 0.21  # inches between blocks, where their names stand
    wide = (room - gap * (across - 1)) / across
    high = (GRID_HEIGHT - gap * (down - 1)) / down
    # no smaller than numbers stay readable; what does not fit then is left out
    cell = max(min(wide / columns, high / rows, 0.42), 0.2)
    fit = min(rows, int(high / cell + 0.01)), min(columns, int(wide / cell + 0.01))
    values = x.reshape(sizes).tolist()
    for b in range(down):
        for a in range(across):
            x0 = left + a * (columns * cell + gap)
            y0 = GRID_TOP - b * (rows * cell + gap)
            index = ", ".join(map(str, (b, a)[4 - x.dim() :]))
            if index:
                write(axes, x0, y0 + 0.11, f"[{index}]", size=9)
            draw_block(axes, values[b][a], fit, cell, x0, y0)
    if arrows:
        draw_directions(axes, x.dim(), left, fit[1] * cell, fit[0] * cell, y0)


def draw_block(
    axes: Any,
    values: list[list[int]],
    fit: tuple[int, int],
    cell: float,
    left: float,
    top: float,
) -> None:
    """Rows and columns of one block, as many as fit."""
    rows, columns = fit
    for r in range(rows):
        for c in range(columns):
            x, y = left + c * cell, top - (r + 1) * cell
            box(axes, x, y, cell, cell, facecolor=PAPER)
            cut_row = r == rows - 1 and rows < len(values)
            cut_column = c == columns - 1 and columns < len(values[0])
            text = "⋮" if cut_row else "…" if cut_column else str(values[r][c])
            size = 10 if cell > 0.3 else 9
            write(axes, x + cell / 2, y + cell / 2, text, ha="center", size=size)


def draw_directions(
    axes: Any, dims: int, left: float, wide: float, high: float, lowest: float
) -> None:
    """Beside and below the first blocks, an arrow with the name of each axis.

    `lowest` is the top of the lowest block.
    """
    last, top = dims - 1, GRID_TOP
    under = lowest - high - 0.1
    arrow(axes, (left, under), (left + wide, under), last)
    name: dict[str, Any] = {"size": 9, "ha": "center"}
    write(
        axes,
        left + max(wide, 0.45) / 2,
        under - 0.13,
        f"axis {last}",
        color=COLOURS[last],
        **name,
    )
    if dims > 1:
        arrow(axes, (left - 0.1, top), (left - 0.1, top - high), last - 1)
        text = f"axis {last - 1}"
        at = left - 0.24, top - max(high, 0.45) / 2
        write(axes, *at, text, rotation=90, color=COLOURS[last - 1], **name)
