"""The explorer of part 6.2: the shares that a DistributedSampler deals out."""

from typing import TYPE_CHECKING, Any

from labkit.chapters.ch06.shards import Shards, deal
from labkit.lesson.explore import Choice, Explorer, Whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIZE = (7.4, 3.5)  # inches
MOST, RANKS = 16, 4
LEFT, WIDE, HIGH, GAP = 0.78, 0.41, 0.3, 0.045  # inches: left edge, column, box, gap
INK, SOFT, RED, GREEN = "#222222", "#6B6B6B", "#B3261E", "#00694E"
FILLS = ("#CFE5F5", "#FBE3C4", "#D5EFE3", "#F3D9E8")


def draw_shards(
    figure: "Figure",
    samples: int,
    world: int,
    epoch: int,
    shuffle: bool,
    drop_last: bool,
    set_epoch: str,
) -> str:
    """Draw what each rank reads in an epoch, and by whom each sample is read.

    Returns what the picture shows.
    """
    figure.set_layout_engine("none")
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, SIZE[0]), ylim=(0, SIZE[1]))
    axes.axis("off")
    found = deal(samples, world, epoch, shuffle, drop_last, set_epoch == "called")
    headline(axes, found)
    data(axes, found, SIZE[1] - 1.06)
    top = SIZE[1] - 1.72
    axes.text(0.12, top, "what each rank reads, in order", size=10, color=SOFT)
    for rank, reads in enumerate(found.ranks):
        low = top - 0.1 - (rank + 1) * (HIGH + 0.06)
        label(axes, low + HIGH / 2, f"rank {rank}")
        if not reads:
            axes.text(LEFT, low + HIGH / 2, "nothing", size=10, color=RED, va="center")
        for place, index in enumerate(reads):
            added = found.is_padding(rank, place)
            box(axes, place, low, str(index), FILLS[rank], added)
    return told(found, epoch, shuffle, set_epoch == "called")


def headline(axes: Any, found: Shards) -> None:
    """What is wrong with the shares, if anything."""
    if found.repeated:
        extra = sum(map(len, found.ranks)) - found.samples
        text, color = f"✗ {extra} {plural('read', extra)} too many", RED
    elif found.dropped:
        left = len(found.dropped)
        text, color = f"○ {left} {plural('sample', left)} left out", RED
    else:
        text, color = "✓ each sample is read once", GREEN
    axes.text(
        0.12, SIZE[1] - 0.3, text, size=13, weight="bold", color=color, va="center"
    )


def box(axes: Any, column: int, low: float, text: str, fill: str, marked: bool) -> None:
    """A sample; a red frame and hatching mark one that was added."""
    from matplotlib.patches import Rectangle

    left = LEFT + column * WIDE
    axes.add_patch(
        Rectangle(
            (left, low),
            WIDE - GAP,
            HIGH,
            facecolor=fill,
            edgecolor=RED if marked else INK,
            linewidth=2.0 if marked else 0.7,
            linestyle=(0, (3, 1.4)) if marked else "-",
        )
    )
    axes.text(
        left + (WIDE - GAP) / 2,
        low + HIGH / 2 - 0.01,
        text,
        size=9.5,
        weight="bold" if marked else "normal",
        color=RED if marked else INK,
        ha="center",
        va="center",
    )


def data(axes: Any, found: Shards, low: float) -> None:
    """The samples of the data set, and under each who reads it."""
    axes.text(0.12, low + HIGH + 0.1, "the data, and who reads it", size=10, color=SOFT)
    label(axes, low + HIGH / 2, "sample")
    label(axes, low - 0.17, "read by")
    for index, count in found.counts.items():
        readers = [r for r, reads in enumerate(found.ranks) if index in reads]
        fill = FILLS[readers[0]] if count == 1 else "white"
        box(axes, index, low, str(index), fill, count != 1)
        text = str(readers[0]) if count == 1 else f"{count}×"
        axes.text(
            LEFT + index * WIDE + (WIDE - GAP) / 2,
            low - 0.17,
            text,
            size=9.5,
            weight="normal" if count == 1 else "bold",
            color=INK if count == 1 else RED,
            ha="center",
            va="center",
        )


def label(axes: Any, height: float, text: str) -> None:
    axes.text(0.12, height, text, size=10, color=INK, va="center")


def told(found: Shards, epoch: int, shuffle: bool, called: bool) -> str:
    """What the picture shows: the counts, what is read wrongly, and the order."""
    world, each = len(found.ranks), len(found.ranks[0])
    says = (
        f"{found.samples} {plural('sample', found.samples)} on {world} "
        f"{plural('rank', world)}, epoch {epoch}: {each} a rank, {each * world} "
        f"{plural('read', each * world)} in all."
    )
    if found.repeated:
        extra = each * world - found.samples
        says += (
            f" The sampler has added {extra}: {samples(list(found.repeated))} "
            f"{'is' if len(found.repeated) == 1 else 'are'} read more than once."
        )
    elif found.dropped:
        one = len(found.dropped) == 1
        says += (
            f" {samples(found.dropped, True)} {'is' if one else 'are'} read by no rank."
        )
    else:
        says += " Every sample is read once."
    return f"{says} {order(found, epoch, shuffle, called)}"


def order(found: Shards, epoch: int, shuffle: bool, called: bool) -> str:
    if not shuffle:
        return "The order is that of the data, in every epoch."
    if epoch == 0:
        return "The order is drawn from the seed and the epoch."
    if found.ranks != found.first:
        return "Order and shares are others than in epoch 0."
    if called:
        return "By chance the order is that of epoch 0."
    return "Without set_epoch the order is that of epoch 0, and so is every later one."


def samples(indices: list[int], first: bool = False) -> str:
    """The samples by their numbers; many of them by how many they are."""
    word = plural("sample", len(indices))
    word = word.capitalize() if first else word
    if len(indices) > 6:
        return f"{len(indices)} {word.lower()}"
    names = [str(index) for index in indices]
    end = " and ".join([", ".join(names[:-1]), names[-1]] if names[1:] else names)
    return f"{word} {end}"


def plural(word: str, count: int) -> str:
    return word if count == 1 else f"{word}s"


EXPLORERS: list[Explorer] = [
    Explorer(
        id="6.2-shards",
        draw=draw_shards,
        controls={
            "samples": Whole(1, MOST, 9),
            "world": Whole(1, RANKS, 2),
            "epoch": Whole(0, 5, 0),
            "shuffle": Choice((True, False)),
            "drop_last": Choice((False, True)),
            "set_epoch": Choice(("called", "not called")),
        },
        labels={
            "samples": "samples",
            "world": "ranks",
            "epoch": "epoch",
            "shuffle": "shuffle",
            "drop_last": "drop_last",
            "set_epoch": "set_epoch",
        },
        size=SIZE,
    )
]
