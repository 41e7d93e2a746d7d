"""Two shapes, typed as text, under one operation: which axis goes where, in how many bytes.

The rules are those of https://docs.pytorch.org/docs/stable/notes/broadcasting.html, and
for `@` those of https://docs.pytorch.org/docs/stable/generated/torch.matmul.html.  What is
allocated is measured, never computed.
"""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass

import torch

from labkit.lesson.costs import size
from labkit.measure.memory import track_memory

LIMIT = 64_000_000  # bytes of any one tensor that is still measured
PRODUCTS = 3_000_000_000  # multiplications of a matmul that are still measured
AXES = 6
FAILS = ("clash", "a cannot grow", "rows clash", "columns clash")
OPERATIONS: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "a * b": lambda a, b: a * b,
    "a + b": lambda a, b: a + b,
    "(a - b) ** 2": lambda a, b: (a - b) ** 2,
    "a.add_(b)": lambda a, b: a.add_(b),
    "a @ b": lambda a, b: a @ b,
}
Shape = tuple[int, ...]


class Refused(Exception):
    """A reason, in one sentence, why there is nothing to measure."""


@dataclass(frozen=True)
class Axis:
    """One column of the picture: a size for a and b (None: missing) and what becomes of it.

    `fate` is "equal", "a stretches", "b stretches", "clash" or "a cannot grow"; in the
    last two axes of a product "rows" (a's; b's is summed away), "columns" (b's; a's is
    summed away), or "rows clash" and "columns clash", where the summed two differ.
    """

    left: int | None
    right: int | None
    fate: str


@dataclass(frozen=True)
class Bytes:
    """What one operation took, in bytes, beside its operands.

    `forward` and `backward` are peaks (the backward without the gradient that comes in);
    `kept` is what the graph holds between them, beside operands and result.
    """

    result: int
    forward: int
    kept: int
    backward: int


def parse(text: str, name: str) -> Shape:
    """The shape meant by `text`, like "1000, 1", "(3,)" or "" for no axes at all.

    Raises Refused, with a sentence that names `name`, for anything else.

    >>> parse("(2, 1, 4)", "a")
    (2, 1, 4)
    """
    inner = re.fullmatch(r"\s*[\[(]?(.*?)[\])]?\s*", text, re.DOTALL)
    words = re.split(r"[\s,;x×*]+", inner.group(1).strip(" ,;")) if inner else []
    words = [word for word in words if word]
    for word in words:
        if re.fullmatch(r"[-−]\d+", word):
            raise Refused(f"{name}: a size is 0 or more, and {word} came.")
        shown = word if len(word) <= 16 else word[:15] + "…"
        if not re.fullmatch(r"[0-9]+", word):
            raise Refused(
                f"{name}: “{shown}” is no size; type whole numbers like 1000, 1."
            )
        if len(word) > 9:
            raise Refused(f"{name}: {shown} is more than any tensor has room for.")
    if len(words) > AXES:
        raise Refused(
            f"{name}: {len(words)} axes came; the picture has room for {AXES}."
        )
    return tuple(int(word) for word in words)


def axes(a: Shape, b: Shape, operation: str) -> list[Axis]:
    """The axes of both shapes, aligned at the right, and the fate of each."""
    if operation != "a @ b":
        return [Axis(m, n, fate(m, n, operation)) for m, n in aligned(a, b)]
    if not a or not b:
        which = "neither has" if not a and not b else f"{'b' if a else 'a'} has not"
        raise Refused(f"a @ b: both need at least one axis, and {which}.")
    batch = [Axis(m, n, fate(m, n, operation)) for m, n in aligned(a[:-2], b[:-2])]
    rows, summed = (a[-2] if len(a) > 1 else None), a[-1]
    summed_too, columns = (b[-2], b[-1]) if len(b) > 1 else (b[-1], None)
    ends = "" if summed == summed_too else " clash"
    return [
        *batch,
        Axis(rows, summed_too, f"rows{ends}"),
        Axis(summed, columns, f"columns{ends}"),
    ]


def aligned(a: Shape, b: Shape) -> list[tuple[int | None, int | None]]:
    """Both shapes' sizes, axis by axis from the left; None where one has no axis."""
    length = max(len(a), len(b))
    return list(
        zip(
            (None,) * (length - len(a)) + a,
            (None,) * (length - len(b)) + b,
            strict=True,
        )
    )


def fate(m: int | None, n: int | None, operation: str) -> str:
    """What broadcasting does with one axis of size m in a and n in b."""
    if m == n:
        return "equal"
    if m is not None and n in (None, 1):
        return "b stretches"
    if m in (None, 1):
        return "a cannot grow" if operation == "a.add_(b)" else "a stretches"
    return "clash"


def clash(a: Shape, b: Shape, operation: str) -> str:
    """Torch's own message about two shapes that do not fit, in one sentence.

    Stretched from a single number, operands take no memory, whatever their shapes: a
    product of many matrices would copy them before it complains.
    """
    real = operation == "a.add_(b)" or 1 in (len(a), len(b))
    left, right = (
        torch.zeros(shape) if real else torch.zeros(()).expand(shape)
        for shape in (a, b)
    )
    try:
        OPERATIONS[operation](left, right)
    except RuntimeError as error:
        return f"torch says: {str(error).splitlines()[0].rstrip('.')}."
    raise AssertionError(f"{a} and {b} fit under {operation}")


def affordable(a: Shape, b: Shape, operation: str) -> None:
    """Raises Refused where the shapes do not fit, or need too much to be run here."""
    for name, shape in (("a", a), ("b", b)):
        within_limit(name, shape)
    result = shape_of(axes(a, b, operation))
    if result is None:
        raise Refused(clash(a, b, operation))
    within_limit("the result", result)
    if operation == "a @ b":
        for name, shape in (("a", a), ("b", b)):
            within_limit(f"{name}, copied for the product,", copied(shape, a, b))
        products = math.prod(result) * a[-1]
        if products > PRODUCTS:
            raise Refused(
                f"that is {products / 1e9:.3g} billion multiplications; this page "
                f"measures up to {PRODUCTS / 1e9:g} billion."
            )


def shape_of(columns: list[Axis]) -> Shape | None:
    """The result's shape, from the fate of the axes; None where they do not fit."""
    if any(axis.fate in FAILS for axis in columns):
        return None
    stays = [
        axis.right if axis.fate in ("a stretches", "columns") else axis.left
        for axis in columns
    ]
    return tuple(n for n in stays if n is not None)


def copied(shape: Shape, a: Shape, b: Shape) -> Shape:
    """The shape in which matmul has to copy the operand of this shape; its own if not.

    The batch axes are merged into one: that needs a copy where no view describes it.
    """
    batch = torch.broadcast_shapes(a[:-2], b[:-2])
    if len(shape) < 2:
        return shape
    stretched = torch.zeros(shape, device="meta").expand(batch + shape[-2:])
    try:
        stretched.view(math.prod(batch), *shape[-2:])
    except RuntimeError:
        return tuple(stretched.shape)
    return shape


def within_limit(name: str, shape: Shape) -> None:
    needed = 4 * math.prod(shape)
    if needed > LIMIT:
        raise Refused(
            f"{name} would be {size(needed)} as {text_of(shape)}; this page measures "
            f"up to {size(LIMIT)} a tensor."
        )


def measure(a: Shape, b: Shape, operation: str) -> Bytes:
    """Run the operation forward and backward on float32 tensors and count its bytes."""
    left, right = (torch.ones(shape, requires_grad=True) for shape in (a, b))
    # a leaf cannot be edited in place, and clone's backward allocates nothing
    operand = left.clone()
    with track_memory() as forward:
        result = OPERATIONS[operation](operand, right)
    new = 0 if operation == "a.add_(b)" else result.nbytes
    incoming = torch.ones_like(result)
    with track_memory() as backward:
        grads = torch.autograd.grad(result, (left, right), incoming)
    del grads
    return Bytes(
        result=result.nbytes,
        forward=forward.peak_bytes,
        kept=forward.live_bytes - new,
        backward=backward.peak_bytes,
    )


def text_of(shape: Shape) -> str:
    """The shape as Python writes it."""
    return str(tuple(shape))
