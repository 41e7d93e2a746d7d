"""The explorer of part 6.1: a model of DataParallel and DDP on several GPUs."""

from typing import TYPE_CHECKING, Any

from labkit.chapters.ch06.scaling import Step, data_parallel, ddp, speed_up
from labkit.lesson.explore import Choice, Explorer, Whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST = 16  # GPUs
ARTICLE = {"DataParallel": 2.5, "DDP": 3.7}  # on 4 GPUs
# Okabe and Ito's colours; marks and dashes say the same again
INK, FAINT, GRID = "#222222", "#8a8a8a", "#e4e4e4"
BLUE, ORANGE = "#0072B2", "#B8500A"
COMPUTE = ("#DCDCDC", "#B9B9B9")  # forward, backward


def draw_scaling(
    figure: "Figure", megabytes: int, step: int, link: float, gpus: int
) -> str:
    """Draw the speed-up by the number of GPUs, and one step on `gpus` of them.

    `megabytes` of parameters, `step` in ms on one GPU, `link` in GB a second.  Returns
    what the picture shows.
    """
    figure.set_layout_engine("none")
    given = megabytes * 1e6, step / 1e3, link * 1e9
    curves = {
        "DataParallel": [data_parallel(*given, n) for n in range(1, MOST + 1)],
        "DDP": [ddp(*given, n) for n in range(1, MOST + 1)],
    }
    draw_curves(figure.add_axes((0.085, 0.43, 0.9, 0.48)), curves, gpus)
    now = {name: steps[gpus - 1] for name, steps in curves.items()}
    draw_steps(figure.add_axes((0.2, 0.105, 0.785, 0.185)), now, gpus)
    return told(now, curves, gpus)


def draw_curves(axes: Any, curves: dict[str, list[Step]], gpus: int) -> None:
    """Speed-up over the number of GPUs, with the article's two figures."""
    many = range(1, MOST + 1)
    axes.plot(many, many, color=FAINT, lw=1.2, ls=(0, (4, 2)))
    looks = {"DataParallel": (ORANGE, "s"), "DDP": (BLUE, "o")}
    for name, (color, mark) in looks.items():
        ups = [speed_up(s, n) for s, n in zip(curves[name], many, strict=True)]
        axes.plot(many, ups, color=color, lw=2, marker=mark, ms=4, label=name)
        axes.plot(
            gpus, ups[gpus - 1], mark, color=color, ms=9, mec=INK, mew=1.2, zorder=4
        )
    axes.plot([], [], color=FAINT, lw=1.2, ls=(0, (4, 2)), label="n times as fast")
    axes.plot(
        [4, 4],
        list(ARTICLE.values()),
        "*",
        color="white",
        mec=INK,
        mew=1.2,
        ms=12,
        zorder=5,
        label="the article: 2.5 and 3.7 on 4 GPUs",
    )
    axes.vlines(gpus, 0, gpus, color=FAINT, lw=0.9, zorder=0)
    axes.set(xlim=(0.7, MOST + 0.3), ylim=(0, MOST + 0.5))
    axes.set_xticks([1, 2, 4, 6, 8, 10, 12, 14, 16])
    axes.set_yticks([1, 4, 8, 12, 16])
    axes.set_ylabel("speed-up", fontsize=10)
    axes.set_xlabel("GPUs", fontsize=10, labelpad=1)
    title = "a model, not a measurement: samples a second, one GPU = 1"
    axes.set_title(title, fontsize=10, loc="left", color=INK, pad=7)
    axes.legend(
        fontsize=9,
        loc="upper left",
        handlelength=2.2,
        framealpha=1,
        edgecolor="white",
        borderaxespad=0.2,
    )
    finish(axes)
    axes.grid(axis="y", color=GRID, linewidth=0.7)


def draw_steps(axes: Any, now: dict[str, Step], gpus: int) -> None:
    """One step of each, as a line of time in ms."""
    one, two = now["DDP"], now["DataParallel"]
    rows = {"one GPU": 2.0, f"DDP, {gpus}": 1.0, f"DataParallel, {gpus}": 0.0}
    bars(axes, 2.0, [(one.forward, COMPUTE[0]), (one.backward, COMPUTE[1])])
    bars(axes, 1.14, [(one.forward, COMPUTE[0]), (one.backward, COMPUTE[1])], 0.4)
    start = max(one.forward, one.total - one.sync)
    bars(axes, 0.82, [(one.sync, BLUE)], 0.22, start)
    bars(
        axes,
        0.0,
        [
            (two.copy, ORANGE),
            (two.forward, COMPUTE[0]),
            (two.backward, COMPUTE[1]),
            (two.reduce, ORANGE),
        ],
    )
    longest = max(one.total, two.total) * 1e3
    axes.set(xlim=(0, longest * 1.02), ylim=(-0.45, 2.45))
    axes.set_yticks(list(rows.values()), list(rows))
    axes.set_xlabel("one step, ms", fontsize=10, labelpad=1)
    title = "grey: forward, backward; coloured: transfers between GPUs"
    axes.set_title(title, fontsize=10, loc="left", color=INK, pad=6)
    finish(axes)
    axes.tick_params(axis="y", length=0, labelsize=9.5)


def bars(
    axes: Any,
    row: float,
    parts: list[tuple[float, str]],
    high: float = 0.66,
    start: float = 0.0,
) -> None:
    """Parts of a step, one behind the other."""
    for seconds, color in parts:
        axes.barh(
            row,
            seconds * 1e3,
            left=start * 1e3,
            height=high,
            color=color,
            edgecolor="white",
            linewidth=0.6,
        )
        start += seconds


def finish(axes: Any) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=9, color=FAINT)
    axes.set_axisbelow(True)


def told(now: dict[str, Step], curves: dict[str, list[Step]], gpus: int) -> str:
    """What the model says, at `gpus` and at the article's 4."""
    ups = {name: speed_up(step, gpus) for name, step in now.items()}
    one = now["DDP"].forward + now["DDP"].backward
    says = (
        f"In this model {gpus} GPUs train {times(ups['DDP'])} as fast as one with DDP and "
        f"{times(ups['DataParallel'])} with DataParallel: a step takes "
        f"{now['DDP'].total * 1e3:,.0f} and {now['DataParallel'].total * 1e3:,.0f} ms, on "
        f"one GPU {one * 1e3:,.0f}."
    )
    slower = [name for name, up in ups.items() if up < 1]
    if slower:
        says += f" Slower than one GPU: {' and '.join(slower)}."
    if gpus == 4:
        return f"{says} The article reports 3.7 and 2.5 times."
    four = [number(speed_up(curves[name][3], 4)) for name in ("DDP", "DataParallel")]
    return (
        f"{says} On 4 it says {four[0]} and {four[1]}; the article reports 3.7 and 2.5."
    )


def times(factor: float) -> str:
    return f"{number(factor)} times"


def number(factor: float) -> str:
    return f"{factor:.1f}" if factor >= 0.95 else f"{factor:.2g}"


EXPLORERS: list[Explorer] = [
    Explorer(
        id="6.1-scaling",
        draw=draw_scaling,
        controls={
            "megabytes": Choice((100, 5, 25, 400, 1400)),
            "step": Choice((100, 10, 30, 300, 1000)),
            "link": Choice((10, 0.1, 1, 25, 100, 300)),
            "gpus": Whole(2, MOST, 4),
        },
        labels={
            "megabytes": "parameters, MB",
            "step": "step on one GPU, ms",
            "link": "link, GB/s",
            "gpus": "GPUs",
        },
        size=(7.4, 5.0),
    )
]
