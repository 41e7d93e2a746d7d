"""An optimizer beside a saved state: matched by position, judged by name and shape."""

from typing import Any

import torch
from torch.optim import Optimizer

from labkit.probe.finding import Finding, names
from labkit.probe.state_groups import judge_kind, judge_names, settings, unnamed
from labkit.probe.state_judgement import judge_cast
from labkit.probe.state_result import Mismatch, StateDiff
from labkit.probe.state_storage import shared

# What torch's optimizers keep of one parameter's own shape; other entries (a count of
# steps, factored moments) have shapes of their own.
_LIKE_PARAMETER = frozenset(
    "exp_avg exp_avg_sq max_exp_avg_sq exp_inf momentum_buffer square_avg grad_avg "
    "acc_delta sum prev step_size ax".split()
)


def compare_optimizer(optimizer: Optimizer, state: dict[str, Any]) -> StateDiff:
    """Return what `optimizer.load_state_dict(state)` would meet.

    It matches parameters by their position alone.  Where both sides know the names of
    the parameters (`Adam(model.named_parameters())`, torch 2.6), the order is judged by
    them; otherwise only shapes can tell.
    """
    findings: list[Finding] = []
    notes: list[str] = []
    groups, saved_groups = optimizer.param_groups, state["param_groups"]
    live = [parameter for group in groups for parameter in group["params"]]
    ids = [key for group in saved_groups for key in group["params"]]
    here, there = _saved_names(groups), _saved_names(saved_groups)
    called = here or [f"parameter {place}" for place in range(len(live))]
    sizes, saved_sizes = _sizes(groups), _sizes(saved_groups)
    if sizes != saved_sizes:
        what = (
            f"the optimizer has groups of {_said(sizes)} parameters and the state of "
            f"{_said(saved_sizes)}: load_state_dict raises"
        )
        findings.append(Finding(what, "the parameter groups", "certain", "7.2"))
    findings += judge_kind(groups, saved_groups)
    missing, unexpected = judge_names(here, there, findings)
    if not (here and there):
        notes.append(unnamed(live, bool(here), bool(there)))
    wrong, cast, matched, without = [], [], [], []
    for name, parameter, key in zip(called, live, ids, strict=False):
        entry = state["state"].get(key)
        if not entry:
            without.append(name)
            continue
        differing = _differing(name, parameter, entry)
        wrong += differing
        cast += _casts(name, parameter, entry)
        matched += [] if differing else [name]
    if wrong:
        what = (
            "the state at that position is of another parameter: load_state_dict takes "
            "it, and the next step raises or is wrong"
        )
        findings.append(Finding(what, names(map(str, wrong)), "certain", "7.2"))
    judge_cast(cast, findings, notes, "7.2")
    if ids and not state["state"]:
        notes.append("The state holds no moments: it was saved before the first step.")
    elif without:
        notes.append(f"{names(without)}: the state holds nothing for it.")
    notes += settings(groups, saved_groups)
    aliased = _aliased(optimizer, state, dict(zip(ids, called, strict=False)))
    if aliased:
        what = (
            "the state uses the memory of the live optimizer's own: it follows every "
            "later step, so keep copy.deepcopy(optimizer.state_dict()) instead"
        )
        findings.append(Finding(what, names(aliased), "certain", "7.2"))
    return StateDiff(
        subject=type(optimizer).__name__,
        matched=tuple(matched),
        missing=missing,
        unexpected=unexpected,
        wrong_shape=tuple(wrong),
        cast=tuple(cast),
        aliased=aliased,
        findings=tuple(findings),
        notes=tuple(notes),
    )


def _saved_names(groups: list[dict[str, Any]]) -> list[str]:
    """Return all parameters' names in order; none where a group does not have them."""
    found = [name for group in groups for name in group.get("param_names", ())]
    return found if len(found) == sum(_sizes(groups)) else []


def _sizes(groups: list[dict[str, Any]]) -> list[int]:
    return [len(group["params"]) for group in groups]


def _said(sizes: list[int]) -> str:
    return " and ".join(map(str, sizes)) or "no"


def _differing(name: str, parameter: torch.Tensor, entry: Any) -> list[Mismatch]:
    return [
        Mismatch(f"{name}: {key}", tuple(parameter.shape), tuple(value.shape))
        for key, value in entry.items()
        if key in _LIKE_PARAMETER
        and isinstance(value, torch.Tensor)
        and value.shape != parameter.shape
        and not (key in ("ax", "step_size") and value.dim() == 0)
    ]


def _casts(name: str, parameter: torch.Tensor, entry: Any) -> list[Mismatch]:
    return [
        Mismatch(f"{name}: {key}", parameter.dtype, value.dtype)
        for key, value in entry.items()
        if key in _LIKE_PARAMETER
        and isinstance(value, torch.Tensor)
        and parameter.is_floating_point()  # of others the state keeps its own dtype
        and value.dtype != parameter.dtype
    ]


def _aliased(
    optimizer: Optimizer, state: dict[str, Any], called: dict[Any, str]
) -> tuple[str, ...]:
    live = [
        value
        for entry in optimizer.state.values()
        for value in entry.values()
        if isinstance(value, torch.Tensor)
    ]
    flat = {
        f"{called.get(key, key)}: {name}": value
        for key, entry in state["state"].items()
        for name, value in entry.items()
    }
    return shared(live, flat)
