"""The timeline of a loader: workers, the batches that are ready, and the trainer."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from labkit.probe.loader_result import LoaderReport

_BLUE, _ORANGE, _GREEN, _GREY = "#0072B2", "#E69F00", "#009E73", "#BBBBBB"


def draw(report: "LoaderReport") -> "Figure":
    """Return the timeline as a Figure on white; its label is the alt text."""
    from matplotlib.figure import Figure

    rows = report.timeline
    workers = sorted({row.worker for row in rows})
    figure = Figure(
        figsize=(8, 2.2 + 0.3 * len(workers)), facecolor="white", layout="constrained"
    )
    lanes, queue = figure.subplots(
        2, 1, sharex=True, height_ratios=(len(workers) + 1.5, 1.5)
    )
    for place, worker in enumerate(workers):
        bars = [(r.began, r.ended - r.began) for r in rows if r.worker == worker]
        lanes.broken_barh(
            bars, (place - 0.35, 0.7), facecolor=_BLUE, edgecolor="white", linewidth=0.5
        )
    trainer = len(workers)
    waits = [(r.asked, r.came - r.asked) for r in rows]
    computes = [(r.came, r.done - r.came) for r in rows]
    lanes.broken_barh(
        waits,
        (trainer - 0.35, 0.7),
        facecolor=_GREY,
        hatch="///",
        edgecolor="white",
        label="waiting",
    )
    lanes.broken_barh(
        computes,
        (trainer - 0.35, 0.7),
        facecolor=_ORANGE,
        edgecolor="white",
        linewidth=0.5,
        label="computing",
    )
    who = [f"worker {worker}" if report.workers else "reading" for worker in workers]
    lanes.set_yticks(range(trainer + 1), [*who, "trainer"])
    lanes.set_ylim(trainer + 0.6, -0.6)
    lanes.legend(loc="lower right", ncols=2, frameon=False, fontsize="small")
    changes = sorted([(r.ended, 1) for r in rows] + [(r.came, -1) for r in rows])
    times, ready, count = [0.0], [0], 0
    for time, change in changes:
        count += change
        times.append(time)
        ready.append(max(count, 0))
    queue.step(times, ready, where="post", color=_GREEN)
    queue.set_ylabel("batches ready")
    queue.set_ylim(bottom=0)
    queue.set_xlabel("seconds since the epoch began")
    for axes in (lanes, queue):
        axes.spines[["top", "right"]].set_visible(False)
    share = report.waiting_share
    waited = f", which waits {share:.0%} of the time" if share is not None else ""
    figure.set_label(
        f"Timeline of {len(rows)} batches over {report.total_s:.2g} seconds: a lane for "
        f"each of {len(workers)} reading processes, one for the trainer{waited}, and "
        f"below the number of batches that are ready, at most {max(ready)}."
    )
    return figure
