"""The picture of padded batches, and of what buckets do to their number and waste."""

from typing import TYPE_CHECKING, Any

from labkit.chapters.ch04.padding_epochs import (
    BUCKETS,
    SHUFFLED,
    SORTED,
    WIDTHS,
    Epoch,
    epoch,
    spread,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito's colours; hatches, dashes and markers say the same again
INK, FAINT, GRID, BLUE, ORANGE = "#222222", "#8a8a8a", "#e4e4e4", "#0072B2", "#B8500A"
PALE = "#FBE3CC"  # behind the hatches of the pads
ROOM, GAP = 260, 4  # places side by side, and between two batches


def draw_padding(figure: "Figure", shown: Epoch, order: str, width: int) -> None:
    """Above, batches as they are padded; below, waste and batches by bucket width."""
    figure.set_layout_engine("none")  # fixed places: nothing jumps on a change
    draw_batches(figure.add_axes((0.02, 0.53, 0.96, 0.36)), shown)
    left = figure.add_axes((0.075, 0.115, 0.405, 0.285))
    right = figure.add_axes((0.575, 0.115, 0.405, 0.285))
    draw_curve(left, shown.size, order, width, waste, "share of pads, %")
    draw_curve(right, shown.size, order, width, count, "batches in an epoch")


def draw_batches(axes: Any, shown: Epoch) -> None:
    """Some batches side by side: a row a name, letters solid and pads hatched."""
    from matplotlib.patches import Patch, Rectangle

    chosen = spread(shown, ROOM, GAP)
    left = 0
    for batch in chosen:
        longest, rows = max(batch), len(batch)
        axes.add_patch(
            Rectangle((left, 0), longest, rows, fc=PALE, ec=ORANGE, lw=0, hatch="/////")
        )
        edges = [n for row in range(rows) for n in (row, row + 1)]
        ends = [left + length for length in batch for _ in range(2)]
        axes.fill_betweenx(edges, left, ends, color=BLUE, lw=0)
        axes.add_patch(Rectangle((left, 0), longest, rows, fill=False, ec=INK, lw=0.8))
        left += longest + GAP
    axes.set(xlim=(-0.5, ROOM + 0.5), ylim=(shown.size * 1.01, -0.01 * shown.size))
    axes.axis("off")
    names = sum(map(len, chosen))
    title = (
        f"{len(chosen)} of the {len(shown.batches)} batches, {names:,} names: "
        "a row a name, a column a place"
    )
    axes.set_title(title, fontsize=10, loc="left", color=INK, pad=8)
    axes.legend(
        handles=[
            Patch(fc=BLUE, label="letter"),
            Patch(fc=PALE, ec=ORANGE, lw=0, hatch="/////", label="pad"),
        ],
        fontsize=9.5,
        loc="lower right",
        bbox_to_anchor=(1.005, 0.99),
        ncols=2,
        frameon=False,
        borderpad=0.2,
        columnspacing=1.2,
        handletextpad=0.5,
    )


def waste(found: Epoch) -> float:
    return 100 * found.wasted


def count(found: Epoch) -> float:
    return len(found.batches)


def draw_curve(
    axes: Any, size: int, order: str, width: int, measure: Any, title: str
) -> None:
    """A measure of the epoch by bucket width, with the other orders as lines."""
    heights = [measure(epoch(size, BUCKETS, w)) for w in WIDTHS]
    free = measure(epoch(size, SHUFFLED))
    axes.plot(WIDTHS, heights, "-o", color=BLUE, markersize=3.5, linewidth=1.5)
    axes.axhline(free, color=ORANGE, linewidth=1.5, linestyle=(0, (5, 2)))
    axes.set_ylim(0, 1.22 * max(free, *heights))
    if measure is waste:
        axes.axhline(waste(epoch(size, SORTED)), color=INK, lw=1.5, ls=(0, (1, 1.5)))
        note(axes, free, "shuffled", ORANGE, order == SHUFFLED)
        note(axes, waste(epoch(size, SORTED)), "sorted", INK, order == SORTED)
        note(axes, heights[-1], "buckets", BLUE, order == BUCKETS, points=6)
    else:
        # under its line, since the curve runs closely above it
        note(axes, free, "shuffled or sorted", ORANGE, order != BUCKETS, points=-4)
    if order == BUCKETS:
        axes.plot(width, heights[width - 1], "o", color=BLUE, markersize=9)
    axes.set_xlim(0.2, WIDTHS[-1] + 0.8)
    axes.set_xticks([1, 5, 10, 15, 20])
    axes.set_xlabel("bucket width, letters", fontsize=10)
    axes.set_title(title, fontsize=10, loc="left", color=INK, pad=7)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=9, color=FAINT)
    axes.grid(axis="y", color=GRID, linewidth=0.7)
    axes.set_axisbelow(True)


def note(
    axes: Any, height: float, text: str, color: str, chosen: bool, points: int = 3
) -> None:
    """The name of a line at its right end, bold where it is what is shown above.

    It stands `points` above the line, or below it.
    """
    axes.annotate(
        text,
        (WIDTHS[-1] + 0.8, height),
        xytext=(0, points),
        textcoords="offset points",
        ha="right",
        va="bottom" if points > 0 else "top",
        fontsize=9.5,
        color=color,
        fontweight="bold" if chosen else "normal",
    )
