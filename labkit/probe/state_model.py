"""A model beside a state dict: names, shapes, dtypes, prefixes, shared tensors."""

from typing import Any

import torch
from torch import nn

from labkit.probe.finding import Finding, names
from labkit.probe.state_judgement import (
    judge_cast,
    judge_missing,
    judge_shapes,
    judge_tied,
    judge_unexpected,
)
from labkit.probe.state_names import Renaming, find_renaming
from labkit.probe.state_result import Mismatch, StateDiff
from labkit.probe.state_storage import address, shared


def compare_model(model: nn.Module, state: dict[str, Any]) -> StateDiff:
    """Return what `model.load_state_dict(state)` would meet.

    The model's names are those of its own `state_dict()`.
    """
    expected: dict[str, Any] = model.state_dict(keep_vars=True)
    findings: list[Finding] = []
    notes: list[str] = []
    renaming = find_renaming(expected, state)
    if renaming is not None:
        findings.append(_renamed(renaming, expected, state))
        state = {renaming.names.get(key, key): value for key, value in state.items()}
    aliased = shared(_tensors(expected), state)
    if aliased:
        what = (
            f"{len(aliased):,} of the state's tensors use the memory of the live model: "
            "they follow every later step, so keep copy.deepcopy(model.state_dict()) "
            "instead"
        )
        findings.append(Finding(what, names(aliased), "certain", "7.1"))
    tied = _tied(expected)
    missing = tuple(name for name in expected if name not in state)
    unexpected = tuple(name for name in state if name not in expected)
    not_saved = _not_saved(model, expected)
    findings += judge_missing(missing, tied, state)
    findings += judge_unexpected(unexpected, not_saved)
    findings += judge_tied(tied, state)
    if not_saved:
        notes.append(
            f"{names(not_saved)}: registered with persistent=False, so that no state "
            "dict holds it, and loading leaves it as it is."
        )
    both = [name for name in expected if name in state]
    wrong, cast = [], []
    for name in both:
        here, there = expected[name], state[name]
        if not isinstance(here, torch.Tensor):
            continue
        if not isinstance(there, torch.Tensor):
            wrong.append(Mismatch(name, tuple(here.shape), type(there).__name__))
        elif here.shape == () and there.shape == (1,):
            notes.append(f"{name}: loading takes the one number of a vector for it.")
        elif here.shape != there.shape:
            wrong.append(Mismatch(name, tuple(here.shape), tuple(there.shape)))
        elif here.dtype != there.dtype:
            cast.append(Mismatch(name, here.dtype, there.dtype))
    differing = {mismatch.name for mismatch in wrong}
    matched = tuple(name for name in both if name not in differing)
    findings += judge_shapes(wrong, len(matched))
    judge_cast(cast, findings, notes, "7.1")
    return StateDiff(
        subject=type(model).__name__,
        matched=matched,
        missing=missing,
        unexpected=unexpected,
        wrong_shape=tuple(wrong),
        cast=tuple(cast),
        prefix=renaming.prefix if renaming else "",
        fix=renaming.fix if renaming else "",
        aliased=aliased,
        tied=tied,
        not_saved=not_saved,
        findings=tuple(findings),
        notes=tuple(notes),
    )


def _renamed(
    renaming: Renaming, expected: dict[str, Any], state: dict[str, Any]
) -> Finding:
    fitting = len(set(expected) & set(state))
    have, lack = (
        ("the state", "the model") if renaming.added else ("the model", "the state")
    )
    what = (
        f"the names of {have} have `{renaming.prefix}` and those of {lack} have not: as "
        f"they stand, {fitting:,} of {len(expected):,} names match, and strict=False "
        "loads nothing else, without a word"
    )
    if renaming.fix:
        what += f"; the fix: `{renaming.fix}`"
    return Finding(what, names(renaming.names), "certain", "7.3")


def _tensors(state: dict[str, Any]) -> list[torch.Tensor]:
    return [value for value in state.values() if isinstance(value, torch.Tensor)]


def _tied(expected: dict[str, Any]) -> tuple[tuple[str, ...], ...]:
    groups: dict[Any, list[str]] = {}
    for name, value in expected.items():
        if isinstance(value, torch.Tensor):
            place = address(value)
            view = (
                (value.storage_offset(), value.shape, value.stride()) if place else ()
            )
            groups.setdefault((place, *view) if place else id(value), []).append(name)
    return tuple(tuple(group) for group in groups.values() if len(group) > 1)


def _not_saved(model: nn.Module, expected: dict[str, Any]) -> tuple[str, ...]:
    buffers = model.named_buffers(remove_duplicate=False)
    return tuple(name for name, _ in buffers if name not in expected)
