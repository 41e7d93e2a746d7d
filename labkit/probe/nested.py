"""Tensors in lists, tuples, dicts and dataclasses, as models take and return them."""

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from typing import Any

import torch


def tensors(value: Any) -> Iterator[torch.Tensor]:
    """Yield the tensors in a value: in sequences, dicts and dataclasses, at any depth."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from tensors(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from tensors(part)
    elif is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            yield from tensors(getattr(value, field.name))


def mapped(value: Any, change: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    """Return a value with its tensors changed, at any depth of lists, tuples, dicts."""
    if isinstance(value, torch.Tensor):
        return change(value)
    if type(value) is dict:
        return {key: mapped(part, change) for key, part in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        parts = [mapped(part, change) for part in value]
        return type(value)(*parts)
    if type(value) in (list, tuple):
        return type(value)(mapped(part, change) for part in value)
    return value


def copied(inputs: Any) -> Any:
    """Return inputs whose tensors a forward may edit in place."""
    return mapped(inputs, lambda t: t.detach().clone().requires_grad_(t.requires_grad))
