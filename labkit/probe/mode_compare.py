"""What forwards in evaluation mode show when they are compared."""

from typing import Any

import torch

from labkit.probe.finding import Finding, names
from labkit.probe.mode_forward import EvalForward, Refused
from labkit.probe.mode_watch import Seen
from labkit.probe.nested import mapped, tensors

CLOSE, CLOSE_HALF = 1e-3, 5e-2
"""Part of the largest output by which rounding may move one: single and half."""


def judge_forwards(
    forward: EvalForward,
    inputs: Any,
    findings: list[Finding],
    notes: list[str],
    unchecked: list[str],
) -> None:
    """Compare forwards in eval mode, and add to what was found, noted and not checked.

    Args:
        forward: runs the model in eval mode, and puts it back.
        inputs: what it runs on.
        findings, notes, unchecked: are added to.

    Raises:
        Refused: the model raised on the inputs.
    """
    first, second = forward(seed=1), forward(seed=2)
    if not first or any(tensor.is_meta for tensor in first):
        unchecked.append("outputs: the model returned no tensors that have values")
        return
    if not same(first, second):
        again = same(first, forward(seed=1))
        _judge_random(forward.watched(seed=2), again, findings, notes)
        unchecked.append("outputs that depend on the batch: they are random")
    else:
        _judge_batch(forward, first, inputs, findings, notes, unchecked)
    if forward.changed:
        statistics = [name for name in forward.changed if "running_" in name]
        what = "a forward in eval mode changes buffers"
        sure = "certain" if statistics else "worth a look"
        findings.append(Finding(what, names(forward.changed), sure, "5.1"))


def _judge_random(
    seen: list[Seen], again: bool, findings: list[Finding], notes: list[str]
) -> None:
    dropouts = [one for one in seen if one.kind == "dropout"]
    uniform = [
        one for one in seen if "rand" in one.operation or "uniform" in one.operation
    ]
    uniform = [one for one in uniform if "randn" not in one.operation]
    if dropouts:
        what = "dropout is active in eval mode: two forwards of the same inputs differ"
        findings.append(Finding(what, _places(dropouts), "certain", "5.1"))
    elif uniform:
        what = (
            "the forward draws uniform random numbers in eval mode, as dropout written "
            "by hand does: two forwards of the same inputs differ"
        )
        findings.append(Finding(what, _places(uniform), "worth a look", "5.1"))
    elif seen:
        notes.append(
            "The forward is random in eval mode, as in a model that samples: "
            f"{_places(seen)}."
        )
    elif again:
        what = (
            "the forward is random in eval mode by Python's or NumPy's random numbers: "
            "two forwards of the same inputs differ"
        )
        findings.append(Finding(what, "forward", "worth a look", "5.1"))
    else:
        notes.append(
            "Two forwards of the same inputs differ in eval mode, also from the same "
            "random state: by another source of chance, or a state kept outside the "
            "model."
        )


def _judge_batch(
    forward: EvalForward,
    full: list[torch.Tensor],
    inputs: Any,
    findings: list[Finding],
    notes: list[str],
    unchecked: list[str],
) -> None:
    sizes = [t.shape[0] for t in tensors(inputs) if t.dim()]
    size = sizes[0] if sizes else 0
    if size < 2:
        unchecked.append("outputs that depend on the batch: that needs two samples")
        return
    rows = size // 2
    fewer = mapped(inputs, lambda t: t[:rows] if t.dim() and len(t) == size else t)
    try:
        part = forward(seed=1, inputs=fewer)
    except Refused as refusal:
        unchecked.append(
            "outputs that depend on the batch: the model refuses half of it "
            f"({type(refusal.__cause__).__name__})"
        )
        return
    if not first_rows_differ(full, part, size, rows):
        return
    mixing = [one for one in forward.watched(seed=1) if one.kind == "batch statistics"]
    if mixing:
        what = (
            "an output depends on the other samples of its batch in eval mode: "
            "normalisation takes the batch's statistics"
        )
        findings.append(Finding(what, _places(mixing), "certain", "5.1"))
    else:
        notes.append(
            "In eval mode the outputs of the first half of the inputs' first axis "
            "depend on the rest: if that axis is the batch, samples are mixed."
        )


def _places(seen: list[Seen]) -> str:
    found = dict.fromkeys(
        f"{one.module} ({one.place})" if one.place else one.module for one in seen
    )
    return names(found)


def same(one: list[torch.Tensor], other: list[torch.Tensor]) -> bool:
    """Return whether two outputs have the same values, NaN included."""
    return len(one) == len(other) and all(
        a.shape == b.shape and a.dtype == b.dtype and _equal(a, b)
        for a, b in zip(one, other, strict=True)
    )


def _equal(a: torch.Tensor, b: torch.Tensor) -> bool:
    if torch.equal(a, b):
        return True
    return bool(((a == b) | ((a != a) & (b != b))).all())


def first_rows_differ(
    full: list[torch.Tensor], part: list[torch.Tensor], size: int, rows: int
) -> bool:
    """Return whether a batch's first rows come out otherwise when they come alone.

    Args:
        full: outputs of a batch of `size`.
        part: outputs of its first `rows`.
    """
    for whole, alone in zip(full, part, strict=False):
        if whole.dim() == 0 or whole.shape[0] != size or alone.shape[:1] != (rows,):
            continue
        if whole.shape[1:] != alone.shape[1:] or not whole.is_floating_point():
            continue
        half = whole.dtype in (torch.float16, torch.bfloat16)
        whole, alone = whole[:rows].double(), alone.double()
        if whole.numel() == 0:
            continue
        close = (CLOSE_HALF if half else CLOSE) * float(whole.abs().max())
        if float((whole - alone).abs().max()) > close:
            return True
    return False
