"""The explorer of part 5.3: real gradients, a number format, and a loss scale."""

from typing import Any

from labkit.chapters.ch05.formats_picture import (
    draw_gaps,
    draw_histogram,
    draw_ranges,
    percent,
)
from labkit.chapters.ch05.number_formats import FORMATS, SOURCES, fates, gradients
from labkit.lesson.explore import Choice, Explorer, Whole

BECOME = {
    "zero": "become 0",
    "few_digits": "lose digits",
    "kept": "keep the format's digits",
    "infinite": "become Inf",
}


def formats(figure: Any, format: str, scale: int, source: str) -> str:
    """Draw what becomes of the gradients × 2**scale when the format has to hold them."""
    figure.set_layout_engine("none")  # fixed places: nothing jumps on a change
    dtype = FORMATS[format]
    magnitudes = gradients(source) * 2.0**scale
    masks = fates(magnitudes, dtype)
    left, width = 0.095, 0.89
    draw_ranges(figure.add_axes((left, 0.815, width, 0.135)), format)
    draw_histogram(
        figure.add_axes((left, 0.365, width, 0.375)),
        magnitudes.log10(),
        scale,
        masks,
        dtype,
    )
    draw_gaps(figure.add_axes((left, 0.055, width, 0.235)), format)
    return sentence(format, scale, source, masks)


def sentence(format: str, scale: int, source: str, masks: dict[str, Any]) -> str:
    """What the picture shows, in one or two sentences."""
    share = {name: float(mask.double().mean()) for name, mask in masks.items()}
    parts = [f"{percent(share[n])} {w}" for n, w in BECOME.items() if share[n]]
    became = " and ".join([", ".join(parts[:-1]), parts[-1]] if parts[1:] else parts)
    says = (
        f"The gradients of {source.replace('a ', 'the ', 1)}, times a loss scale of "
        f"2^{scale} = {2**scale:,}, in {format}: {became}."
    )
    if share["infinite"]:
        return (
            f"{says} One Inf is enough: GradScaler skips the step and halves its scale."
        )
    return says


EXPLORERS: list[Explorer] = [
    Explorer(
        id="5.3-formats",
        draw=formats,
        controls={
            "format": Choice(tuple(FORMATS)),
            "scale": Whole(0, 24, 0),
            "source": Choice(SOURCES),
        },
        labels={
            "format": "format",
            "scale": "loss scale: 2 to the power",
            "source": "gradients of",
        },
        size=(7.2, 5.2),
    ),
]
