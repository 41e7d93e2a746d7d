"""The rows below the picture: a tensor's axes over those of a view, and its memory."""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import torch

from labkit.chapters.ch02.strides import Chain, find_conflict, merged_axes
from labkit.chapters.ch02.strides_picture import (
    BAR,
    CELL,
    CELLS,
    COLOURS,
    FAINT,
    INK,
    LEFT,
    LOWER,
    PAPER,
    RED,
    RIGHT,
    RULE,
    UPPER,
    WALK,
    arrow,
    box,
    write,
)


def draw_axes(axes: Any, x: torch.Tensor, target: Sequence[int] | None) -> None:
    """Middle: the axes of x over those of the view, with walls where none can merge.

    Each axis is as wide as the log of its size, so that axes of x and of the view that
    take in the same values stand over each other.
    """
    rule = (
        "i and i+1 merge where stride[i] = stride[i+1] * size[i+1]; a wall: they do not"
    )
    write(axes, LEFT, RULE, "Axes", weight="bold")
    write(axes, LEFT + 0.55, RULE, rule, size=9.5)
    write(axes, RIGHT, RULE, "width: log(size)", size=9, ha="right", color="#5a5a5a")
    long = [axis for axis in range(x.dim()) if x.shape[axis] > 1]
    if not long:
        write(axes, LEFT, UPPER, "Every axis has size 1: there is nothing to merge.")
        return
    left = LEFT + 0.55
    per_log = (RIGHT - left) / math.log(x.numel())
    write(axes, LEFT, UPPER + BAR / 2, "y")
    at = left
    edges = []
    for axis in long:
        wide = math.log(x.shape[axis]) * per_log
        box(axes, at, UPPER, wide, BAR, facecolor=PAPER)
        text = f"axis {axis}: size {x.shape[axis]}\nstride {x.stride(axis)}"
        middle = at + wide / 2, UPPER + BAR / 2
        write(axes, *middle, text, ha="center", size=9, color=COLOURS[axis])
        at += wide
        edges.append(at)
    if target is not None:
        draw_target_axes(axes, x, target, left, per_log)
    draw_joints(axes, x, long, edges, LOWER if target is not None else UPPER)


def draw_target_axes(
    axes: Any, x: torch.Tensor, target: Sequence[int], left: float, per_log: float
) -> None:
    """The axes that `view` asks for; the one that hits a wall is hatched."""
    conflict = find_conflict(x, target)
    write(axes, LEFT, LOWER + BAR / 2, "view")
    at = left
    for axis, size in enumerate(target):
        if size == 1:
            continue
        wide = math.log(size) * per_log
        hit = conflict is not None and axis == conflict.target
        look = {"edgecolor": RED, "hatch": "///"} if hit else {"edgecolor": FAINT}
        box(axes, at, LOWER, wide, BAR, **look)
        mark = "✗ " if hit else ""
        text = f"{mark}axis {axis}: size {size}"
        middle = at + wide / 2, LOWER + BAR / 2
        paper = {"facecolor": "white", "edgecolor": "none", "pad": 1.5}
        write(axes, *middle, text, ha="center", size=9, bbox=paper)
        at += wide


def draw_joints(
    axes: Any, x: torch.Tensor, long: list[int], edges: list[float], bottom: float
) -> None:
    """Between neighbouring axes: the rule with its numbers, and a wall if it fails."""
    firsts = [group[0] for group in merged_axes(x.shape, x.stride())]
    for (outer, inner), at in zip(pairwise(long), edges, strict=False):
        wall = inner in firsts
        sign = "≠" if wall else "="
        text = f"{x.stride(outer)} {sign} {x.stride(inner)}*{x.shape[inner]}"
        write(axes, at, UPPER + BAR + 0.17, text, ha="center", size=9)
        ends = UPPER + BAR + 0.06, bottom - 0.06
        look = (
            {"lw": 3.2, "color": INK} if wall else {"lw": 1, "color": FAINT, "ls": ":"}
        )
        axes.plot((at, at), ends, solid_capstyle="butt", **look)


def draw_memory(axes: Any, chain: Chain) -> None:
    """Below: the cells of memory, the walk through them, and when each is visited."""
    x = chain.y
    count = x.untyped_storage().nbytes() // x.element_size()
    wide = min(0.42, (RIGHT - LEFT) / count)
    cells = x.as_strided((count,), (1,), 0).tolist()
    place = torch.arange(count).as_strided(x.shape, x.stride(), x.storage_offset())
    walk = place.flatten().tolist()
    whose = f"new, {chain.copied_by} copied" if chain.copied_by else "that of x"
    write(axes, LEFT, WALK, "Memory", weight="bold")
    facts = f"{whose}; offset {x.storage_offset()}; below each cell: when it is visited"
    write(axes, LEFT + 0.75, WALK, facts, size=9.5)
    for n, value in enumerate(cells):
        visits = [str(step) for step, at in enumerate(walk, 1) if at == n]
        used = {"facecolor": PAPER} if visits else {"facecolor": "white", "ls": ":"}
        box(axes, LEFT + n * wide, CELLS, wide, CELL, **used)
        middle = LEFT + (n + 0.5) * wide
        ink = INK if visits else FAINT
        write(axes, middle, CELLS + CELL / 2, str(value), ha="center", color=ink)
        when = "\n".join(visits)
        write(axes, middle, CELLS - 0.05, when, ha="center", va="top", size=9)
    for (here, there), axis in zip(pairwise(walk), steps_of(x.shape), strict=True):
        draw_step(axes, LEFT + wide / 2, wide, here, there, axis)


def steps_of(shape: Sequence[int]) -> list[int]:
    """For each step of the walk, the axis whose index goes up."""
    inner = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
    return [
        next(axis for axis, length in enumerate(inner) if step % length == 0)
        for step in range(1, math.prod(shape))
    ]


def draw_step(
    axes: Any, left: float, wide: float, here: int, there: int, axis: int
) -> None:
    """One arc from a cell to the next that is visited."""
    if here == there:
        return  # the numbers below the cell say it
    start, end = left + here * wide, left + there * wide
    curve = -0.3 / max(abs(end - start), 0.2) ** 0.5
    bend = curve if end > start else -curve
    top = CELLS + CELL + 0.02
    style = f"arc3,rad={bend:.3f}"
    arrow(axes, (start, top), (end, top), axis, connectionstyle=style)
