"""What autograd tells of itself, so that storages can be told apart."""

import sys
from typing import Any

import torch

AccumulateGrad: Any = torch._C._functions.AccumulateGrad  # type: ignore[attr-defined]
current_node: Any = torch._C._current_autograd_node

_apply = torch.autograd.Function.apply.__func__.__code__  # type: ignore[attr-defined]
_names: dict[type, list[str]] = {}

top_hooks: Any = getattr(torch._C._autograd, "_top_saved_tensors_default_hooks", None)

NODES_ARE_READ = top_hooks is not None
"""Whether nodes may be asked what they saved.

On torch 2.6 nobody can tell whether it was saved under a hook. Reading would run the
hook, and that of checkpoint would compute a whole layer again: there nothing is read.
"""


def saved_by(node: Any) -> list[Any]:
    """Return what a node saved without hooks: tensors, and tuples of them."""
    found = []
    names = _names.get(type(node))
    if names is None:
        raw = "_raw_saved_"
        names = [f"_saved_{n[len(raw) :]}" for n in dir(node) if n.startswith(raw)]
        _names[type(node)] = names
    for name in names:
        try:
            saved = getattr(node, name)
        except (AttributeError, RuntimeError):
            continue  # freed, or changed in place: autograd can't use it either
        if saved is not None:
            found.append(saved)
    return found


def in_function() -> bool:
    """Whether a custom autograd Function is running: nothing inside is recorded."""
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code is _apply:
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False
