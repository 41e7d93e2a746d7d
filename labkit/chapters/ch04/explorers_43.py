"""The explorer of part 4.3: what padding costs, by batch size and order."""

from typing import TYPE_CHECKING

from labkit.chapters.ch04.padding_epochs import (
    BUCKETS,
    ORDERS,
    SIZES,
    WIDTHS,
    Epoch,
    epoch,
)
from labkit.chapters.ch04.padding_picture import draw_padding
from labkit.lesson.explore import Choice, Explorer, Whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw(figure: "Figure", size: int, order: str, width: int) -> str:
    """Draw padded batches of `size` names in an order, and waste by bucket width.

    `order` is one of ORDERS; `width`, in letters, counts for buckets only.  Returns what
    the picture shows.
    """
    shown = epoch(size, order, width if order == BUCKETS else 0)
    draw_padding(figure, shown, order, width)
    return told(shown, order, width)


def told(shown: Epoch, order: str, width: int) -> str:
    """What an epoch is made of, in two sentences."""
    if order == BUCKETS:
        lengths = "one length" if width == 1 else f"{width} lengths"
        order = f"from {shown.buckets} buckets of {lengths} each"
    total, full = len(shown.batches), shown.full
    rest = total - full
    ends = f"{rest:,} of them not full"
    if rest in (0, total):
        ends = "all of them full" if full else "none of them full"
    return (
        f"Batches of {shown.size}, {order}: {shown.names:,} names with {shown.letters:,} "
        f"letters take {total:,} batches, {ends}. They have {shown.places:,} places, and "
        f"{share(shown)} of these are pads."
    )


def share(shown: Epoch) -> str:
    if shown.places == shown.letters:
        return "none"
    return f"{100 * shown.wasted:.{0 if shown.wasted > 0.095 else 1}f} %"


EXPLORERS: list[Explorer] = [
    Explorer(
        id="4.3-padding",
        draw=draw,
        controls={
            "size": Choice(SIZES),
            "order": Choice(ORDERS),
            "width": Whole(WIDTHS[0], WIDTHS[-1], 5),
        },
        labels={
            "size": "batch size",
            "order": "order",
            "width": "bucket width, letters",
        },
        size=(7.6, 4.7),
    )
]
