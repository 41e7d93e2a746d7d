"""The picture of a schedule by its own calls, and by the steps of a run."""

from typing import TYPE_CHECKING, Any

from labkit.chapters.ch05.schedule_runs import PEAK, Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito's colours; line width, dashes and markers say the same again
INK, FAINT, BLUE, RED, ORANGE = "#222222", "#8a8a8a", "#0072B2", "#B3261E", "#B8500A"
MOST_MARKS = 60  # that stand side by side over the whole run
FEW = 60  # calls that are drawn as stairs


def draw_run(figure: "Figure", run: Run) -> None:
    """Above, the schedule as it was made; below, what the optimizer gets of it."""
    above, below = figure.subplots(2, 1, height_ratios=(2, 3))
    draw_plan(above, run)
    draw_rates(below, run)
    for axes in (above, below):
        axes.set_ylim(-0.07 * PEAK, 1.12 * PEAK)
        axes.set_yticks([0, PEAK / 2, PEAK], ["0", f"{PEAK / 2:g}", f"{PEAK:g}"])
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(labelsize=9, color=FAINT)
        axes.grid(axis="y", color="#e4e4e4", linewidth=0.7)
        axes.set_axisbelow(True)
    below.set_ylabel("learning rate", fontsize=10)
    above.set_ylabel("learning rate", fontsize=10)


def draw_plan(axes: Any, run: Run) -> None:
    """The schedule by calls; the part that the run goes through is drawn bold."""
    gone = min(run.calls, len(run.plan) - 1)
    whole, part = range(len(run.plan)), range(gone + 1)
    stairs = "steps-post" if len(run.plan) <= FEW else "default"
    axes.plot(
        whole,
        run.plan,
        color=FAINT,
        linewidth=1.2,
        linestyle=(0, (4, 2)),
        drawstyle=stairs,
    )
    axes.plot(part, run.plan[: gone + 1], color=BLUE, linewidth=3, drawstyle=stairs)
    axes.axvline(gone, color=INK, linewidth=1)
    axes.set_xlim(0, max(len(run.plan) - 1, 1) * 1.005)
    title = (
        f"the schedule, made for {calls(run.length)}; bold: what the run goes through, "
        f"{calls(run.calls)}"
    )
    axes.set_title(title, fontsize=10, loc="left", color=INK)
    axes.set_xlabel("calls of scheduler.step()", fontsize=10)


def draw_rates(axes: Any, run: Run) -> None:
    """The rate of every optimizer step, with zeros and jumps marked."""
    ends = [*run.rates, run.rates[-1]]
    axes.step(range(len(ends)), ends, where="post", color=BLUE, linewidth=2)
    zeros = apart([n + 0.5 for n, r in enumerate(run.rates) if run.is_zero(r)], run)
    if zeros:
        axes.plot(
            zeros,
            [0] * len(zeros),
            "s",
            color=RED,
            markerfacecolor="white",
            markersize=6,
            clip_on=False,
            label="rate 0",
        )
    jumps = run.jumps
    if jumps:
        axes.plot(
            jumps,
            [max(run.rates[n], run.rates[n - 1]) for n in jumps],
            "v",
            color=ORANGE,
            markersize=8,
            clip_on=False,
            label="jump by over half the peak",
        )
    axes.set_xlim(0, run.steps)
    epochs = run.steps // run.steps_per_epoch
    title = (
        f"the run: {epochs} epoch{'s' * (epochs != 1)} of {run.steps_per_epoch} steps"
    )
    axes.set_title(title, fontsize=10, loc="left", color=INK)
    axes.set_xlabel("optimizer step", fontsize=10)
    if zeros or jumps:
        axes.legend(
            fontsize=9,
            loc="lower right",
            bbox_to_anchor=(1.01, 0.98),
            ncols=2,
            frameon=False,
            borderpad=0.2,
            handletextpad=0.2,
        )


def apart(places: list[float], run: Run) -> list[float]:
    """So many of the places that their marks do not lie on each other."""
    kept: list[float] = []
    for place in places:
        if not kept or place - kept[-1] >= run.steps / MOST_MARKS:
            kept.append(place)
    return kept


def calls(count: int) -> str:
    """A number of calls in words."""
    return f"{count:,} call{'s' * (count != 1)}"
