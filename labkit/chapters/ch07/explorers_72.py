"""The explorer of part 7.2: a training that is killed, and what the restart brings back."""

from typing import TYPE_CHECKING, Any

from labkit.chapters.ch07.resume_runs import (
    KILLED,
    OPTIMIZERS,
    SAVED,
    STEPS,
    Resumed,
    resumed,
)
from labkit.lesson.explore import Choice, Explorer

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito's colours; line width and dashes say the same again
INK, FAINT, GRID, ORANGE, GREEN = "#222222", "#8a8a8a", "#e4e4e4", "#B8500A", "#00694E"
LOW, HIGH = 2e-3, 30.0  # the losses that are drawn


def draw_resume(figure: "Figure", optimizer: str, saved: str, killed: int) -> str:
    """Draw the loss and the distance of the weights of a run that was killed and resumed.

    `optimizer` is a key of OPTIMIZERS, `saved` one of SAVED, `killed` the number of steps
    before the kill.  Returns what the picture shows.
    """
    figure.set_layout_engine("none")  # fixed places: nothing jumps on a change
    run = resumed(optimizer, saved, killed)
    draw_losses(figure.add_axes((0.105, 0.44, 0.875, 0.47)), run)
    draw_distance(figure.add_axes((0.105, 0.115, 0.875, 0.2)), run)
    return told(run, optimizer, saved)


def draw_losses(axes: Any, run: Resumed) -> None:
    """The unbroken run wide and grey, the resumed one narrow over it."""
    steps = range(run.killed, STEPS + 1)
    color = GREEN if run.same_bits else ORANGE
    axes.plot(run.whole.losses, color="#b9b9b9", linewidth=5, solid_capstyle="round")
    axes.plot(
        range(run.killed + 1), run.whole.losses[: run.killed + 1], color=INK, lw=1.6
    )
    axes.plot(steps, run.after.losses, color=color, linewidth=1.6)
    axes.set_yscale("log")
    axes.set_ylim(LOW, HIGH)
    axes.set_ylabel("training loss", fontsize=10)
    axes.set_title(
        "grey: the run without a kill; thin: up to the kill, and after the restart",
        fontsize=10,
        loc="left",
        color=INK,
        pad=8,
    )
    axes.annotate(
        "killed",
        (run.killed, 0.985),
        xycoords=("data", "axes fraction"),
        xytext=(-5, 0),
        textcoords="offset points",
        ha="right",
        va="top",
        fontsize=10,
        color=INK,
    )
    if run.highest > 1.5 * run.whole_highest:
        peak = run.killed + run.after.losses.index(run.highest)
        axes.annotate(
            f"{times(run.highest / run.before)} as high",
            (peak, min(run.highest, HIGH / 2)),
            xytext=(12 if run.killed < 450 else -12, 6),
            textcoords="offset points",
            ha="left" if run.killed < 450 else "right",
            fontsize=10,
            color=ORANGE,
            fontweight="bold",
        )
        axes.plot(peak, run.highest, "o", color=ORANGE, markersize=5)
    finish(axes, run)
    axes.tick_params(labelbottom=False)


def draw_distance(axes: Any, run: Resumed) -> None:
    """How far the weights are from those of the unbroken run."""
    steps = range(run.killed, STEPS + 1)
    far = run.apart
    if run.same_bits:
        axes.plot(steps, far, color=GREEN, linewidth=2.5)
        axes.set_ylim(-0.15, 1)
        text, color = "✓ the same bits, to the end", GREEN
    else:
        axes.plot(steps, far, color=ORANGE, linewidth=1.6)
        axes.fill_between(steps, far, color=ORANGE, alpha=0.15, linewidth=0)
        axes.set_ylim(0, max(far) * 1.25)
        text, color = f"✗ {far[-1]:.1f} apart at the end", ORANGE
    axes.set_title(
        "distance of the weights from the grey run's",
        fontsize=10,
        loc="left",
        color=INK,
        pad=6,
    )
    axes.set_title(
        text, fontsize=10, loc="right", color=color, fontweight="bold", pad=6
    )
    axes.set_ylabel("distance", fontsize=10)
    axes.set_xlabel("step", fontsize=10)
    finish(axes, run)


def finish(axes: Any, run: Resumed) -> None:
    axes.axvline(run.killed, color=INK, linewidth=1, linestyle=(0, (3, 2)))
    axes.set_xlim(0, STEPS)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=9, color=FAINT)
    axes.grid(axis="y", color=GRID, linewidth=0.7)
    axes.set_axisbelow(True)


def told(run: Resumed, optimizer: str, saved: str) -> str:
    """What the picture shows, in one or two sentences."""
    what = saved if saved.startswith("the ") else f"the {saved}"
    begin = f"{optimizer}, killed after {run.killed} steps, resumed from {what}"
    begin = begin.replace(", random", " and random") if saved != SAVED[3] else begin
    if run.same_bits:
        return f"{begin}: every weight is the same to the last bit, to the end."
    end = f"the weights end {run.apart[-1]:.1f} apart from those of the run without a kill"
    if run.highest > 1.5 * run.whole_highest:
        back = (
            f"is back after {run.back} steps"
            if run.back < len(run.after.losses)
            else "is not back by the end"
        )
        return (
            f"{begin}: the loss rises to {times(run.highest / run.before)} its value and "
            f"{back}; {end}."
        )
    return f"{begin}: the loss shows nothing; {end}."


def times(factor: float) -> str:
    return f"{factor:.1f} times" if factor < 9.95 else f"{factor:.0f} times"


EXPLORERS: list[Explorer] = [
    Explorer(
        id="7.2-resume",
        draw=draw_resume,
        controls={
            "optimizer": Choice(tuple(OPTIMIZERS)),
            "saved": Choice(SAVED),
            "killed": Choice(KILLED),
        },
        labels={
            "optimizer": "optimizer",
            "saved": "what was saved",
            "killed": "killed after step",
        },
        size=(7.2, 5.0),
    )
]
