"""When `view` works: which axes can be merged, and which target would need others."""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from labkit.lesson.evidence import LabError

STEPS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "nothing": lambda x: x,
    "transpose(0, 1)": lambda x: x.transpose(0, 1),
    "transpose(0, -1)": lambda x: x.transpose(0, -1),
    "[::2]": lambda x: x[::2],
    "[..., ::2]": lambda x: x[..., ::2],
    "[..., :2]": lambda x: x[..., :2],
    "flip(0)": lambda x: x.flip(0),
    "expand(2, ...)": lambda x: x.expand(2, *x.shape),
    "contiguous()": lambda x: x.contiguous(),
}


@dataclass(frozen=True)
class Chain:
    """What a chain of steps made: `y`, the code that makes it, and who copied last."""

    y: torch.Tensor
    code: str
    copied_by: str | None


@dataclass(frozen=True)
class Conflict:
    """Target axis `target` would take in axes `outer` and `inner`, which do not merge."""

    target: int
    outer: int
    inner: int


def run_chain(shape: Sequence[int], steps: Sequence[str]) -> Chain:
    """Count up in `shape`, then apply the steps, each a key of STEPS.

    Raises LabError, in one sentence, where a step does not fit the shape it gets.

    >>> run_chain((3, 4), ["transpose(0, 1)"]).y.stride()
    (1, 4)
    """
    x = torch.arange(math.prod(shape)).view(*shape)
    code, copied_by = "x", None
    for step in steps:
        if step == "transpose(0, 1)" and x.dim() < 2:
            raise LabError(
                f"{step} swaps two axes, and shape {tuple(x.shape)} has only one"
            )
        before, x = x, STEPS[step](x)
        if step != "nothing":
            code += step if step.startswith("[") else f".{step}"
        if x.untyped_storage().data_ptr() != before.untyped_storage().data_ptr():
            copied_by = step
    return Chain(x, code, copied_by)


def merged_axes(shape: Sequence[int], stride: Sequence[int]) -> list[list[int]]:
    """The axes longer than 1, in groups that one stride can walk through.

    Axis i joins the next where stride[i] == stride[i+1] * size[i+1], which is the rule
    that https://docs.pytorch.org/docs/stable/generated/torch.Tensor.view.html states.

    >>> merged_axes((2, 3, 4), (12, 4, 1))
    [[0, 1, 2]]
    >>> merged_axes((2, 3, 4), (0, 4, 1))
    [[0], [1, 2]]
    """
    groups: list[list[int]] = []
    for axis, size in enumerate(shape):
        if size == 1:
            continue
        last = groups[-1][-1] if groups else None
        if last is not None and stride[last] == stride[axis] * size:
            groups[-1].append(axis)
        else:
            groups.append([axis])
    return groups


def find_conflict(x: torch.Tensor, target: Sequence[int]) -> Conflict | None:
    """What keeps `x.view(target)` from working, or None where it works.

    `target` has as many values as x and no -1.  Both lists of sizes are read from the
    right: a target axis may end where x's groups end, and may not reach across.

    >>> find_conflict(torch.zeros(3, 4).t(), (12,))
    Conflict(target=0, outer=0, inner=1)
    """
    groups = merged_axes(x.shape, x.stride())
    for group, outer in zip(groups[:0:-1], groups[-2::-1], strict=True):
        wall = math.prod(x.shape[group[0] :])
        inside = 1
        for axis in range(len(target) - 1, -1, -1):
            outside = inside * target[axis]
            if inside < wall < outside:
                return Conflict(axis, outer[-1], group[0])
            inside = outside
    return None


def why_not(x: torch.Tensor, target: Sequence[int]) -> str:
    """The conflict in words and numbers; empty where `x.view(target)` works."""
    conflict = find_conflict(x, target)
    if conflict is None:
        return ""
    outer, inner = conflict.outer, conflict.inner
    stride, size = x.stride(), x.shape
    product = stride[inner] * size[inner]
    axis = "its only axis" if len(target) == 1 else f"its axis {conflict.target}"
    return (
        f"{axis} would need axes {outer} and {inner} merged, but "
        f"stride[{outer}] = {stride[outer]} and "
        f"stride[{inner}]*size[{inner}] = {stride[inner]}*{size[inner]} = {product}"
    )


def read_sizes(text: str) -> tuple[int, ...]:
    """The sizes that `text` gives `view`.  Raises LabError where it gives none.

    >>> read_sizes("(2, -1)")
    (2, -1)
    """
    bare = text.strip().strip("()[]").strip().strip(",")
    parts = [part for part in re.split(r"\s*,\s*|\s+", bare) if part]
    if not parts or not all(re.fullmatch(r"[+-]?[0-9]{1,4}", part) for part in parts):
        raise LabError("view takes whole numbers, like 3, 4 or -1")
    if len(parts) > 6:
        raise LabError("this picture has room for six sizes")
    return tuple(int(part) for part in parts)


def called(sizes: Sequence[int]) -> str:
    """The call as a reader would write it."""
    return f"view({', '.join(map(str, sizes))})"


def fill_sizes(sizes: Sequence[int], count: int) -> tuple[int, ...]:
    """The sizes for a tensor of `count` values, a -1 among them worked out.

    Raises LabError, in one sentence, where `view` would not take them.

    >>> fill_sizes((2, -1), 12)
    (2, 6)
    """
    if min(sizes) < -1:
        raise LabError(f"{called(sizes)} has a size below -1")
    if sizes.count(-1) > 1:
        raise LabError(f"{called(sizes)} leaves open more than one size")
    known = math.prod(size for size in sizes if size != -1)
    if -1 in sizes:
        if known == 0 or count % known:
            raise LabError(f"{called(sizes)} does not divide {count} values evenly")
        return tuple(count // known if size == -1 else size for size in sizes)
    if known != count:
        raise LabError(f"{called(sizes)} asks for {known} values, and y has {count}")
    return tuple(sizes)
