"""The explorer of part 4.2: what a loader does when, measured and predicted."""

from typing import TYPE_CHECKING

from labkit.chapters.ch04.loader_model import Setting, predict, share_waiting
from labkit.chapters.ch04.loader_run import measure
from labkit.chapters.ch04.timeline_picture import draw_timelines
from labkit.lesson.explore import Choice, Explorer, Whole
from labkit.probe.loader_advice import RULE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BATCHES = 15
SLOW = 5  # each so many-th batch, where they are not alike
UNEVEN = f"5 ms, each {SLOW}th 50 ms"
COSTS = {  # of an item: seconds, and those of the slow ones
    "20 ms": (0.02, 0.02),
    "8 ms": (0.008, 0.008),
    "1 ms": (0.001, 0.001),
    UNEVEN: (0.005, 0.05),
}


def setting(workers: int, item: str, prefetch: int, step: int) -> Setting:
    """The epoch that the controls ask for; a batch is one item."""
    usual, slow = COSTS[item]
    costs = tuple(slow if n % SLOW == SLOW - 1 else usual for n in range(BATCHES))
    return Setting(workers, prefetch, costs, step / 1e3)


def draw_timeline(
    figure: "Figure", workers: int, item: str, prefetch: int, step: int
) -> str:
    """Run a small loader and draw its timetable above the one that the model predicts.

    `workers` and `prefetch` are the loader's num_workers and prefetch_factor, `item` is
    a key of COSTS, `step` the milliseconds of a step.  Returns what the picture shows.
    """
    figure.set_layout_engine("none")  # fixed places: nothing jumps on a change
    epoch = setting(workers, item, prefetch, step)
    real, model = measure(epoch), predict(epoch)
    started = f", started in {real.startup_s * 1e3:.0f} ms" if workers else ""
    titles = (
        f"measured: {processes(workers)}{started}",
        "predicted by the model",
    )
    draw_timelines(figure, epoch, list(zip(titles, (real.rows, model), strict=True)))
    return told(epoch, item, share_waiting(real.rows), share_waiting(model))


def told(epoch: Setting, item: str, real: float, model: float) -> str:
    """What the picture shows, in two sentences."""
    shares = f"{real * 100:.0f} % of its time, and {model * 100:.0f} % by the model"
    sides = [share > RULE for share in (real, model)]
    if sides[0] == sides[1]:
        side = f"both {'above' if sides[0] else 'within'}"
    else:
        side = "one above and one within"
    rule = f"{side} the article's {RULE * 100:.0f} %"
    mean = sum(epoch.costs) / len(epoch.costs) * 1e3
    step = f"{epoch.step * 1e3:.0f} ms"
    if epoch.workers == 0:
        return (
            f"Without workers the trainer waits {shares}, {rule}. Nothing is read while a "
            f"step of {step} computes: each batch takes {mean:.3g} + {step}."
        )
    pace = f"a batch comes every {mean / epoch.workers:.3g} ms"
    if item == UNEVEN:
        pace += " on average"
    return (
        f"With {processes(epoch.workers)} and prefetch_factor {epoch.prefetch} the trainer "
        f"waits {shares}, {rule}. At full speed {pace}, and a step takes {step}."
    )


def processes(workers: int) -> str:
    if workers == 0:
        return "one process reads and computes"
    return f"{workers} worker{'s' * (workers != 1)}"


EXPLORERS: list[Explorer] = [
    Explorer(
        id="4.2-timeline",
        draw=draw_timeline,
        controls={
            "workers": Whole(0, 4, 1),
            "item": Choice(tuple(COSTS)),
            "prefetch": Whole(1, 4, 2),
            "step": Choice((10, 20, 5)),
        },
        labels={
            "workers": "num_workers",
            "item": "item",
            "prefetch": "prefetch_factor",
            "step": "step (ms)",
        },
        size=(7.2, 5.3),
    )
]
