"""The explorer of part 5.2: a schedule, and the loop that steps it."""

from typing import TYPE_CHECKING

from labkit.chapters.ch05.schedule_picture import calls, draw_run
from labkit.chapters.ch05.schedule_runs import AFTER, STARTS, STEPPED, Run, run
from labkit.lesson.explore import Choice, Explorer, Whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_schedule(
    figure: "Figure",
    after: str,
    start: str,
    warmup: int,
    length: int,
    epochs: int,
    steps_per_epoch: int,
    stepped: str,
) -> str:
    """Draw a schedule by its calls, and the rates that the optimizer steps use."""
    shown = run(after, start, warmup, length, epochs, steps_per_epoch, stepped)
    draw_run(figure, shown)
    return " ".join([counted(shown), course(shown), *remarks(shown)])


def counted(shown: Run) -> str:
    """How long the run is, and how far it comes in the schedule."""
    if shown.calls == shown.length:
        far = "as many as the schedule was made for"
    elif shown.calls < shown.length:
        share = f"{100 * shown.calls / shown.length:.3g} %"
        far = f"{share} of the {shown.length:,} it was made for"
    else:
        far = f"{shown.calls / shown.length:.3g} times the {shown.length:,} it was made for"
    return f"{shown.steps:,} optimizer steps and {calls(shown.calls)}, {far}."


def course(shown: Run) -> str:
    """The first, the highest and the last rate."""
    top = max(shown.rates)
    return (
        f"The rate is {number(shown.rates[0])} at the first step, {number(top)} at most "
        f"(step {shown.rates.index(top):,}), and {number(shown.rates[-1])} at the last."
    )


def remarks(shown: Run) -> list[str]:
    """What is worth a look: zeros, jumps, a rise after the fall."""
    said = []
    if shown.wasted:
        share = f"{shown.wasted:,} of the {shown.steps:,} steps"
        said.append(f"At a rate of 0, {share} move nothing.")
    if jumps := shown.jumps:
        more = f" and {len(jumps) - 1:,} more" if len(jumps) > 1 else ""
        said.append(f"It jumps at step {jumps[0]:,}{more}.")
    turn = shown.turns
    if turn is not None:
        low = number(shown.rates[turn])
        said.append(f"From {low} at step {turn:,} it rises again.")
    return said


def number(rate: float) -> str:
    return f"{rate:.2g}"


EXPLORERS: list[Explorer] = [
    Explorer(
        id="5.2-schedule",
        draw=draw_schedule,
        controls={
            "after": Choice(tuple(AFTER)),
            "start": Choice(tuple(STARTS)),
            "warmup": Choice((20, 0, 1, 5, 100, 1000)),
            "length": Choice((200, 10, 50, 1000)),
            "epochs": Whole(1, 30, 10),
            "steps_per_epoch": Choice((20, 5, 100)),
            "stepped": Choice(STEPPED),
        },
        labels={
            "after": "after the warm-up",
            "start": "warm-up, at call n",
            "warmup": "warm-up, calls",
            "length": "length with warm-up, calls",
            "epochs": "epochs",
            "steps_per_epoch": "steps per epoch",
            "stepped": "stepped after",
        },
        size=(7.4, 4.7),
    )
]
