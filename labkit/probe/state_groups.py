"""The groups of an optimizer beside saved ones: their kind, order and settings."""

from typing import Any

import torch

from labkit.probe.finding import Finding, names

# The setting by which torch's optimizers tell each other apart: with a state of another
# kind, load_state_dict is silent and the next step raises or starts anew.
_KINDS = ("betas", "momentum", "alpha", "rho", "lr_decay", "etas", "lambd", "max_iter")


def judge_kind(
    groups: list[dict[str, Any]], saved: list[dict[str, Any]]
) -> list[Finding]:
    """Judge a state of another kind of optimizer."""
    if not groups or not saved:
        return []
    own = [key for key in _KINDS if key in groups[0]]
    other = [key for key in _KINDS if key in saved[0]]
    if own == other:
        return []
    what = (
        f"the state is of another kind of optimizer: its settings have "
        f"{_said_keys(other)}, and this one's {_said_keys(own)}; load_state_dict takes "
        "it, and the next step raises or starts anew"
    )
    return [Finding(what, "the parameter groups", "certain", "7.2")]


def _said_keys(keys: list[str]) -> str:
    return " and ".join(keys) or "none of these"


def judge_names(
    here: list[str], there: list[str], findings: list[Finding]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Judge the order by name; return the names missing from and only in the state."""
    if not here or not there:
        return (), ()
    missing = tuple(name for name in here if name not in set(there))
    unexpected = tuple(name for name in there if name not in set(here))
    moved = [
        f"{name} (here, {other} in the state)"
        for name, other in zip(here, there, strict=False)
        if name != other
    ]
    if moved and not missing and not unexpected:
        what = (
            "the order of the parameters differs, and their states are matched by "
            "position: each gets the moments of another, without a word where the "
            "shapes agree"
        )
        findings.append(Finding(what, names(moved), "certain", "7.2"))
    elif missing or unexpected:
        what = (
            "the parameters have other names in the state, and are matched by position: "
            f"{len(missing):,} of these are not in the state, and {len(unexpected):,} of "
            "the state's are not here"
        )
        where = names(missing or unexpected)
        findings.append(Finding(what, where, "likely", "7.2"))
    return missing, unexpected


def unnamed(live: list[torch.Tensor], here: bool, there: bool) -> str:
    """Say who does not know the names, and what cannot be seen without them."""
    who = {
        (False, False): "Neither the optimizer nor the state knows",
        (True, False): "The state does not know",
        (False, True): "The optimizer does not know",
    }[here, there]
    shapes = [tuple(parameter.shape) for parameter in live]
    alike = len(shapes) - len(set(shapes))
    blind = ", and parameters of one shape could be swapped unseen" if alike else ""
    return (
        f"{who} the parameters' names, so their order was judged by shapes alone{blind}: "
        "build both from model.named_parameters()."
    )


def settings(groups: list[dict[str, Any]], saved: list[dict[str, Any]]) -> list[str]:
    """Say which settings of the groups loading would change."""
    notes = []
    for place, (own, other) in enumerate(zip(groups, saved, strict=False)):
        changed = [
            f"{key} {own[key]} becomes {other[key]}"
            for key in ("lr", "weight_decay", "momentum", "betas")
            if key in own and key in other and _plain(own[key]) != _plain(other[key])
        ]
        if changed:
            notes.append(f"Loading sets group {place}: {', '.join(changed)}.")
    return notes


def _plain(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return value.item() if isinstance(value, torch.Tensor) else value
