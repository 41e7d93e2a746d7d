"""What is wrong where a model and a state dict differ, and what that would do."""

from typing import Any

import torch

from labkit.probe.finding import Finding, names
from labkit.probe.state_result import Mismatch
from labkit.probe.state_storage import address


def judge_cast(
    cast: list[Mismatch], findings: list[Finding], notes: list[str], page: str
) -> None:
    """Judge values that loading would convert: a finding where that loses something."""
    losing: dict[tuple[Any, Any], list[str]] = {}
    keeping: dict[tuple[Any, Any], list[str]] = {}
    for one in cast:
        # torch's own rule of promotion: a type that both fit into
        fits = torch.promote_types(one.here, one.there) == one.here
        group = keeping if fits else losing
        group.setdefault((one.there, one.here), []).append(one.name)
    for (there, here), found in losing.items():
        what = f"loading rounds {there} to {here} without a word"
        findings.append(Finding(what, names(found), "certain", page))
    for (there, here), found in keeping.items():
        notes.append(f"{names(found)}: loading converts {there} to {here}.")


def judge_missing(
    missing: tuple[str, ...], tied: tuple[tuple[str, ...], ...], state: dict[str, Any]
) -> list[Finding]:
    """Judge names that the state lacks, those of tied weights apart."""
    findings, held = [], set()
    for group in tied:
        absent = [name for name in group if name in missing]
        present = [name for name in group if name not in missing]
        if absent and any(name in state for name in present):
            held.update(absent)
            what = (
                f"it is one tensor with {names(present)}, under which the state has it: "
                "strict=True raises for the second name, strict=False loads it"
            )
            findings.append(Finding(what, names(absent), "certain", "7.1"))
    left = [name for name in missing if name not in held]
    if left:
        what = (
            f"missing from the state ({len(left):,} in all): strict=True raises, and "
            "strict=False keeps the model's present values without a word"
        )
        findings.append(Finding(what, names(left), "certain", "7.1"))
    return findings


def judge_unexpected(
    unexpected: tuple[str, ...], not_saved: tuple[str, ...]
) -> list[Finding]:
    """Judge names that the model lacks, its unsaved buffers apart."""
    findings = []
    buffers = [name for name in unexpected if name in not_saved]
    if buffers:
        what = (
            "the state has it, and the model registers it with persistent=False: "
            "strict=True raises, and strict=False leaves it out"
        )
        findings.append(Finding(what, names(buffers), "certain", "7.1"))
    left = [name for name in unexpected if name not in not_saved]
    if left:
        what = (
            f"in the state and not in the model ({len(left):,} in all): strict=True "
            "raises, and strict=False leaves the values out without a word"
        )
        findings.append(Finding(what, names(left), "certain", "7.1"))
    return findings


def judge_tied(
    tied: tuple[tuple[str, ...], ...], state: dict[str, Any]
) -> list[Finding]:
    """Judge tied weights of which the state has two that differ."""
    findings = []
    for group in tied:
        values = [state[name] for name in group if name in state]
        tensors = [value for value in values if isinstance(value, torch.Tensor)]
        places = {address(value) for value in tensors}
        if len(tensors) < 2 or (len(places) == 1 and None not in places):
            continue
        first = tensors[0]
        same = all(
            value.shape == first.shape and value.device == first.device
            for value in tensors
        )
        if same and None not in places and all(torch.equal(first, v) for v in tensors):
            continue
        if same and None in places:  # no values to compare
            continue
        what = (
            "the model has one tensor under these names, and the state has different "
            f"ones: the last, {group[-1]}, stays"
        )
        findings.append(Finding(what, names(group), "certain", "7.1"))
    return findings


def judge_shapes(wrong: list[Mismatch], matched: int) -> list[Finding]:
    """Judge shapes that differ."""
    if not wrong:
        return []
    what = (
        "the shapes differ: load_state_dict raises, with strict=False too, after it has "
        f"copied the other {matched:,} that match"
    )
    return [Finding(what, names(map(str, wrong)), "certain", "7.1")]
