"""A model or an optimizer beside a state it is to load: `diff_state`."""

import dataclasses
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn.parameter import is_lazy
from torch.optim import Optimizer

from labkit.probe.finding import Finding, names
from labkit.probe.state_file import read_state, unusable
from labkit.probe.state_model import compare_model
from labkit.probe.state_optimizer import compare_optimizer
from labkit.probe.state_result import StateDiff
from labkit.probe.state_storage import unused_bytes


def diff_state(
    model: nn.Module | Optimizer,
    state_or_path: Any,
    key: str | None = None,
) -> StateDiff:
    """Say what loading a state would do, before it is loaded.

    Found for a model are: names that are missing or unexpected, a prefix that a wrapper
    has left in the names, shapes that differ, dtypes that loading would round, tied
    weights that the state has in part or with different values, and a state that uses
    the memory of the live model.  For an optimizer: another number of parameters, an
    order that differs (by name where both sides have names), shapes that do not fit,
    a state of another kind of optimizer.  For a file also: devices that are not here.

    Nothing is loaded into the model, and nothing in a file is run: it is read with
    `weights_only=True`, mapped into memory, on the CPU.  Values are read only where the
    state has two tensors for one that the model ties.

    Args:
        model: the model, or the optimizer, that would load the state.
        state_or_path: a state dict, or the path of a file that `torch.save` wrote.
        key: the entry of a checkpoint that holds the state, such as "model".

    Returns:
        A `StateDiff` with `matched`, `missing`, `unexpected`, `wrong_shape`, `cast`,
        `prefix`, `fix`, `aliased`, `tied`, `not_saved`, `devices`, `findings`, `notes`.

    Raises:
        TypeError: `model` is neither a module nor an optimizer, or the state no dict.
        FileNotFoundError: there is no such file.
        ValueError: a file that cannot be read, or that `weights_only=True` refuses
            (says which allow-list line it needs); a checkpoint of several states
            without `key` (names the keys); a model whose shapes are not known yet.

    Example:
        >>> model = nn.Linear(3, 2)
        >>> diff_state(model, {"module.weight": torch.zeros(2, 3)})
        <StateDiff: Linear, 1 matched, 1 missing; 2 findings>
    """
    if not isinstance(model, nn.Module | Optimizer):
        raise TypeError(
            "diff_state: the first argument is a torch.nn.Module or an optimizer, and "
            f"got {_kind(model)}."
        )
    state: Any = state_or_path
    devices: tuple[str, ...] = ()
    if isinstance(state_or_path, str | os.PathLike):
        state, devices = read_state(Path(state_or_path))
    state = _chosen(model, state, key)
    if isinstance(model, Optimizer):
        found = compare_optimizer(model, state)
        flat = {
            f"{place}: {name}": value
            for place, entry in state["state"].items()
            for name, value in entry.items()
        }
    else:
        _check_shapes(model, state)
        found = compare_model(model, state)
        flat = state
    findings, notes = list(found.findings), list(found.notes)
    if absent := unusable(devices):
        what = (
            f"the file's tensors were saved on {names(absent)}, which is not here: "
            'torch.load raises without `map_location="cpu"`'
        )
        findings.append(Finding(what, "the file", "certain", "7.3"))
    unused, views = unused_bytes(flat)
    if unused and not found.aliased:
        notes.append(
            f"{names(views)}: a view of a larger storage, of which "
            f"{unused:,} bytes are not used but saved all the same; clone it first."
        )
    return dataclasses.replace(
        found, devices=devices, findings=tuple(findings), notes=tuple(notes)
    )


def _chosen(model: Any, state: Any, key: str | None) -> dict[str, Any]:
    """Return the state for the model in what was given, or say what was given."""
    if isinstance(state, nn.Module | Optimizer):
        raise TypeError(
            f"diff_state: the state is a dict or a path, and got {_kind(state)}: give "
            "its .state_dict()."
        )
    if not isinstance(state, Mapping):
        raise TypeError(
            f"diff_state: the state is a dict or a path, and got {_kind(state)}."
        )
    held = {name: kind for name, part in state.items() if (kind := _holds(part))}
    if key is not None:
        if not isinstance(state.get(key), Mapping):
            raise ValueError(
                f"diff_state: key names an entry that holds a state dict, "
                f"{_listing(held)}, and got {key!r}."
            )
        state, held = state[key], {}
    wanted = "optimizer" if isinstance(model, Optimizer) else "model"
    is_optimizer = _holds(state) == "optimizer"
    if wanted == "optimizer" and is_optimizer:
        _check_groups(state)
        return dict(state)
    if wanted == "model" and not is_optimizer and not held:
        return dict(state)
    if is_optimizer:
        raise ValueError(
            "diff_state: this is an optimizer's state, and the first argument is a "
            f"{type(model).__name__}: give the optimizer first."
        )
    if held:
        raise ValueError(
            "diff_state: this is a checkpoint of several entries and no state dict: "
            f"say which one with key, {_listing(held)}."
        )
    raise ValueError(
        f"diff_state: an optimizer's state has 'state' and 'param_groups', and got a "
        f"dict of {names(map(repr, state)) or 'nothing'}."
    )


def _check_groups(state: Any) -> None:
    groups = state["param_groups"]
    whole = isinstance(groups, list | tuple) and all(
        isinstance(group, Mapping) and isinstance(group.get("params"), list | tuple)
        for group in groups
    )
    if not whole or not all(isinstance(e, Mapping) for e in state["state"].values()):
        raise ValueError(
            "diff_state: an optimizer's state has a list of groups, each with its "
            "'params', and a dict of values for each parameter; this one has not."
        )


def _holds(part: Any) -> str:
    """Return whose state a part of a checkpoint is: "optimizer", "model" or ""."""
    if not isinstance(part, Mapping):
        return ""
    if isinstance(part.get("state"), Mapping) and "param_groups" in part:
        return "optimizer"
    values = list(part.values())
    tensors = [value for value in values if isinstance(value, torch.Tensor)]
    return "model" if tensors and len(tensors) * 2 >= len(values) else ""


def _listing(held: dict[str, str]) -> str:
    said = [
        f"{name!r} (of {'an' if kind[0] == 'o' else 'a'} {kind})"
        for name, kind in held.items()
    ]
    return " or ".join(said) or "but no entry of this one does"


def _kind(given: Any) -> str:
    return (
        f"the class {given.__name__}"
        if isinstance(given, type)
        else (f"a {type(given).__name__}")
    )


def _check_shapes(model: nn.Module, state: dict[str, Any]) -> None:
    held = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    lazy = [name for name, tensor in held.items() if is_lazy(tensor)]
    if lazy:
        raise ValueError(
            f"diff_state: {names(lazy)} of the model has no shape yet, since its module "
            "is lazy: run one batch through the model first."
        )
    lazy = [name for name, value in state.items() if is_lazy(value)]
    if lazy:
        raise ValueError(
            f"diff_state: {names(lazy)} of the state has no shape: it was saved from a "
            "lazy module before its first batch."
        )
    if not all(isinstance(name, str) for name in state):
        raise ValueError(
            "diff_state: the names of a model's state dict are strings, and got "
            f"{names(repr(n) for n in state if not isinstance(n, str))}."
        )
