"""The picture of a loader's timetable: workers, batches that are ready, the trainer."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from labkit.chapters.ch04.loader_model import Setting, ready, share_waiting
from labkit.probe.loader_advice import RULE
from labkit.probe.loader_result import BatchTimes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito's colours; hatching and numbers say the same again
INK, SOFT, GRID = "#222222", "#6B6B6B", "#E4E4E4"
BLUE, ORANGE, GREEN, GREY, RED = "#0072B2", "#E69F00", "#009E73", "#C9C9C9", "#B3261E"
HALF = 0.38  # of a bar's height, in lanes
LEFT, WIDE = 0.125, 0.735  # of the timetable, in the figure's width
GAUGE, NARROW = 0.895, 0.035  # of the gauge
NUMBER_WIDTH = 0.037  # of the timetable: what a batch's number needs


def draw_timelines(
    figure: "Figure",
    setting: Setting,
    tables: Sequence[tuple[str, Sequence[BatchTimes]]],
) -> None:
    """Draw timetables under each other on one time axis, each with its title and gauge.

    The gauge shows the share of time that the trainer waits, and the article's limit.
    """
    end = 1.03 * max(rows[-1].done for _, rows in tables)
    high, gap = 0.365, 0.115
    for place, (title, rows) in enumerate(tables):
        bottom = 1 - 0.075 - high - place * (high + gap)
        axes = figure.add_axes((LEFT, bottom, WIDE, high))
        draw_lanes(axes, setting, rows, end * 1e3)
        axes.set_title(title, loc="left", size=10.5, color=INK, pad=6)
        last = place == len(tables) - 1
        axes.tick_params(labelbottom=last)
        if last:
            axes.set_xlabel("milliseconds since the first batch was begun", size=10)
        gauge = figure.add_axes((GAUGE, bottom, NARROW, high))
        draw_gauge(gauge, share_waiting(rows))


def draw_lanes(
    axes: Any, setting: Setting, rows: Sequence[BatchTimes], end: float
) -> None:
    """A lane for each worker, one for the ready batches, and one for the trainer."""
    makers = max(setting.workers, 1)
    queue, trainer = makers, makers + (setting.workers > 0)
    room = end * NUMBER_WIDTH
    counted = setting.step * 1e3 >= room  # all steps have room for a number, or none
    for number, row in enumerate(rows):
        bar(axes, row.began, row.ended, row.worker, BLUE, str(number), room)
        step = str(number) if counted else ""
        bar(axes, row.came, row.done, trainer, ORANGE, step, room)
        axes.broken_barh(
            [(row.asked * 1e3, (row.came - row.asked) * 1e3)],
            (trainer - HALF, 2 * HALF),
            facecolor="white",
            edgecolor="#8F8F8F",
            hatch="/////",
            linewidth=0,
        )
    if setting.workers:
        draw_queue(axes, setting, rows, queue)
    who = [f"worker {n}" for n in range(makers)] if setting.workers else ["reading"]
    names = [
        *who,
        *([f"ready ≤ {setting.ahead}"] if setting.workers else []),
        "trainer",
    ]
    axes.set_yticks(range(len(names)), names)
    axes.set(xlim=(0, end), ylim=(trainer + 0.6, -0.6))
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_color("#9A9A9A")
    axes.tick_params(length=0, labelsize=9.5, labelcolor=INK)
    axes.grid(axis="x", color=GRID, lw=0.8)
    axes.set_axisbelow(True)


def bar(
    axes: Any, begin: float, end: float, lane: int, color: str, name: str, room: float
) -> None:
    """What one batch takes, in seconds, and its name, which needs `room` milliseconds."""
    left, width = begin * 1e3, (end - begin) * 1e3
    axes.broken_barh(
        [(left, width)],
        (lane - HALF, 2 * HALF),
        facecolor=color,
        edgecolor="white" if width > room / 3 else color,  # thin ones stay visible
        linewidth=0.8,
    )
    if width >= room:
        axes.text(
            left + width / 2,
            lane,
            name,
            size=9,
            ha="center",
            va="center_baseline",
            color="white" if color == BLUE else INK,
        )


def draw_queue(
    axes: Any, setting: Setting, rows: Sequence[BatchTimes], lane: int
) -> None:
    """The number of batches that are ready, as a height; the lane holds what may be."""
    times, counts = zip(*ready(rows), strict=True)
    most = setting.ahead
    base = lane + HALF
    heights = [base - 2 * HALF * min(count, most) / most for count in counts]
    ends = [time * 1e3 for time in (*times, rows[-1].done)]
    tops = [*heights, heights[-1]]
    axes.fill_between(ends, tops, base, step="post", color=GREEN, alpha=0.35, lw=0)
    axes.step(ends, tops, where="post", color=GREEN, lw=1.4)
    axes.axhline(lane - HALF, color=GREEN, lw=0.9, ls=(0, (3, 3)))


def draw_gauge(axes: Any, share: float) -> None:
    """The share of time spent waiting, with the article's limit."""
    color = RED if share > RULE else "#00694E"
    axes.bar(0, share, width=1, color="white", edgecolor="#8F8F8F", hatch="/////", lw=0)
    axes.set(xlim=(-0.5, 0.5), ylim=(0, 1), xticks=[], yticks=[])
    axes.spines[:].set(color="#9A9A9A", visible=True)  # whatever the page's style says
    axes.axhline(RULE, color=INK, lw=1.4, ls=(0, (3, 1.5)))
    axes.text(
        0.68, RULE, f"{RULE:.0%}".replace("%", " %"), size=9, va="center", color=INK
    )
    axes.set_title(
        f"waits {share * 100:.0f} %",
        loc="center",
        size=10.5,
        weight="bold",
        color=color,
        pad=6,
    )
