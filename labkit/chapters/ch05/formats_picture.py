"""The picture of number formats: their ranges, a histogram of gradients, their digits."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from labkit.chapters.ch05.number_formats import FORMATS

INK, SOFT, PALE = "#222222", "#6B6B6B", "#D9D9D9"
LOW, HIGH = -16, 7  # powers of ten that the histogram shows
BINS = np.linspace(LOW, HIGH, (HIGH - LOW) * 4 + 1)
WINDOW = "#F6EFB5"
# Okabe-Ito; hatches and words tell the same without colour
LOOKS: dict[str, tuple[str, str]] = {
    "zero": ("#D55E00", "xxx"),
    "few_digits": ("#E69F00", "///"),
    "kept": ("#56B4E9", ""),
    "infinite": ("#CC79A7", "+++"),
}
WORDS = {
    "zero": "become 0",
    "few_digits": "lose digits",
    "kept": "keep the format's digits",
    "infinite": "Inf",
}


def limits(dtype: torch.dtype) -> tuple[float, float, float]:
    """Powers of ten: up to which all becomes 0, from which digits are full, the largest.

    What lies at most half way to the smallest number of the format becomes 0.
    """
    about = torch.finfo(dtype)
    half = about.tiny * about.eps / 2
    zero, full, largest = np.log10([half, about.tiny, about.max])
    return float(zero), float(full), float(largest)


def gap(dtype: torch.dtype, powers: np.ndarray) -> np.ndarray:
    """The largest gap to the next number, relative to a value of 10 to these powers.

    It is `eps` where digits are full; below, the gap is fixed and weighs more and more.
    """
    zero, full, largest = limits(dtype)
    relative = torch.finfo(dtype).eps * 10.0 ** np.maximum(0.0, full - powers)
    outside = (powers < zero + np.log10(2)) | (powers > largest)
    return np.where(outside, np.nan, relative)


def draw_ranges(picture: Any, chosen: str) -> None:
    """One bar for each format, over all the powers of ten that it reaches."""
    for y, (name, dtype) in enumerate(FORMATS.items()):
        zero, full, largest = limits(dtype)
        on = name == chosen
        for fate, left, right in (("few_digits", zero, full), ("kept", full, largest)):
            colour, hatch = LOOKS[fate]
            picture.barh(
                y,
                right - left,
                0.66,
                left=left,
                color=colour if on else PALE,
                hatch=hatch,
                edgecolor=INK if on else "#9A9A9A",
                lw=0.9,
            )
        words = {"va": "center", "size": 9, "color": INK if on else SOFT}
        picture.text(largest + 1, y, scientific(torch.finfo(dtype).max), **words)
        picture.text(zero - 1, y, scientific(10**zero * 2), ha="right", **words)
        weight = "bold" if on else "normal"
        picture.text(-57, y, name, ha="right", weight=weight, **words)
    picture.axvspan(LOW, HIGH, color=WINDOW, lw=0, zorder=0)
    picture.set(xlim=(-56, 50), ylim=(2.55, -0.55))
    picture.set(xticks=[], yticks=[])
    caption(picture, "what each format reaches (shaded: the part shown below)")
    tidy(picture, "left", "bottom")


def draw_histogram(
    picture: Any,
    powers: Tensor,
    scale: int,
    masks: dict[str, Tensor],
    dtype: torch.dtype,
) -> None:
    """The gradients by size, each bar in parts by what becomes of them.

    `powers` are those of ten of the scaled gradients; an outline shows them unscaled.
    """
    every = powers.clamp(LOW, HIGH)
    shares = [
        np.histogram(every[mask], BINS)[0] * 100 / len(every) for mask in masks.values()
    ]
    floor = np.zeros(len(BINS) - 1)
    for (colour, hatch), share in zip(LOOKS.values(), shares, strict=True):
        picture.bar(
            BINS[:-1],
            share,
            np.diff(BINS),
            floor,
            align="edge",
            color=colour,
            hatch=hatch,
            edgecolor=INK,
            lw=0.5,
        )
        floor += share
    top = max(floor) * 1.42
    if scale:
        draw_unscaled(picture, (powers - scale * np.log10(2)).clamp(LOW, HIGH))
    picture.set(xlim=(LOW, HIGH), ylim=(0, top))
    zero, full, largest = limits(dtype)
    zones = {"zero": (LOW, zero), "few_digits": (zero, full)}
    zones |= {"kept": (full, largest), "infinite": (largest, HIGH)}
    for name, (left, right) in zones.items():
        left, right = max(left, LOW), min(right, HIGH)
        if right <= left:
            continue
        picture.axvspan(left, right, color=LOOKS[name][0], alpha=0.10, lw=0, zorder=0)
        if left > LOW:
            picture.axvline(left, color=SOFT, lw=1, ls="--", zorder=3)
        part = float(masks[name].double().mean())
        picture.text(
            (left + right) / 2,
            top * 0.955,
            f"{WORDS[name]}\n{percent(part)}",
            ha="center",
            va="top",
            size=9.5,
            color=INK,
            weight="bold" if part else "normal",
            linespacing=1.35,
        )
    picture.set_xticks(range(LOW, HIGH + 1, 2), [])
    picture.set_yticks([])
    caption(picture, "gradients × loss scale, by size")
    tidy(picture, "left")


def draw_unscaled(picture: Any, powers: Tensor) -> None:
    """The outline of the same gradients without the loss scale."""
    share = np.histogram(powers, BINS)[0] * 100 / len(powers)
    picture.stairs(share, BINS, color=SOFT, lw=1.2, ls=":", zorder=2.5)
    peak = int(share.argmax())
    picture.annotate(
        "unscaled",
        (BINS[peak], share[peak]),
        xytext=(-6, -4),
        textcoords="offset points",
        ha="right",
        va="top",
        size=9,
        color=SOFT,
    )


def draw_gaps(picture: Any, chosen: str) -> None:
    """How far the next number is, relative to the value, for each format."""
    powers = np.linspace(LOW, HIGH, 800)
    places = {"float16": "top", "bfloat16": "bottom", "float32": "bottom"}
    for name, dtype in FORMATS.items():
        on = name == chosen
        relative = gap(dtype, powers)
        colour = "#0072B2" if on else "#8C8C8C"
        style = "-" if on else "--"
        picture.plot(powers, relative, style, color=colour, lw=2.4 if on else 1.2)
        picture.text(
            4.4,
            torch.finfo(dtype).eps * (1.8 if places[name] == "bottom" else 0.5),
            name,
            ha="right",
            va=places[name],
            size=9,
            color=INK if on else SOFT,
            weight="bold" if on else "normal",
        )
    picture.set(xlim=(LOW, HIGH), yscale="log", ylim=(2e-8, 3))
    picture.set_yticks([1, 1e-2, 1e-4, 1e-6], ["1", "0.01", "0.0001", "1e-6"])
    picture.minorticks_off()
    picture.set_xticks(
        range(LOW, HIGH + 1, 2),
        [f"1e{p}" if p else "1" for p in range(LOW, HIGH + 1, 2)],
    )
    picture.grid(axis="y", color="#E6E6E6", lw=0.8)
    picture.set_axisbelow(True)
    caption(picture, "gap to the next number, relative to a value of this size")
    tidy(picture)


def caption(picture: Any, text: str) -> None:
    """What a panel shows, above it at the left."""
    picture.set_title(text, loc="left", size=9.5, color=SOFT, pad=4)


def tidy(picture: Any, *hidden: str) -> None:
    picture.spines[["top", "right", *hidden]].set_visible(False)
    picture.spines[:].set_color("#9A9A9A")
    picture.tick_params(length=0, labelsize=9, labelcolor=INK)


def scientific(value: float) -> str:
    """A number in a few characters, like 65504 or 3.4e+38."""
    return f"{value:.0f}" if 1 <= value < 1e6 else f"{value:.1e}"


def percent(share: float) -> str:
    """A share in at most four characters; small is not nothing, most is not all."""
    if 0 < share < 0.001:
        return "< 0.1 %"
    if 0.999 < share < 1:
        return "> 99.9 %"
    return f"{share * 100:.0f} %" if share in (0, 1) else f"{share * 100:.1f} %"
