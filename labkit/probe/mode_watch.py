"""Operations of a forward that matter in evaluation mode, and where they stand."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn.modules.module import (
    register_module_forward_hook,
    register_module_forward_pre_hook,
)
from torch.utils._python_dispatch import TorchDispatchMode

from labkit.probe.place import Place, here


@dataclass(frozen=True)
class Seen:
    """One operation of interest in a forward.

    Attributes:
        kind: "dropout", "random" or "batch statistics".
        operation: its name in torch.
        module: the path of the module that ran it.
        place: the line of the model's code, if there is one.
    """

    kind: str
    operation: str
    module: str
    place: Place | None


class Watch(TorchDispatchMode):
    """Notes operations that draw random numbers or read the batch's statistics."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.seen: list[Seen] = []
        self._names = {id(module): name for name, module in model.named_modules()}
        self._stack: list[str] = []
        self._hooks: list[Any] = []

    def __enter__(self) -> Any:
        self._hooks = [
            register_module_forward_pre_hook(self._enter_module),
            register_module_forward_hook(self._leave_module, always_call=True),
        ]
        return super().__enter__()

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        for hook in self._hooks:
            hook.remove()

    def _enter_module(self, module: nn.Module, args: Any) -> None:
        # a module that is not registered has no name in the model
        self._stack.append(self._names.get(id(module)) or type(module).__name__)

    def _leave_module(self, module: nn.Module, args: Any, output: Any) -> None:
        if self._stack:
            self._stack.pop()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        kind = _kind(func, _named_arguments(func, args, kwargs or {}))
        if kind:
            module = self._stack[-1] if self._stack else ""
            name = func._schema.name.removeprefix("aten::")
            self.seen.append(Seen(kind, name, module, here()))
        return result


def _named_arguments(func: Any, args: Any, kwargs: dict[str, Any]) -> dict[str, Any]:
    names = [argument.name for argument in func._schema.arguments]
    return {**dict(zip(names, args, strict=False)), **kwargs}


def _kind(func: Any, given: dict[str, Any]) -> str | None:
    name = func._schema.name
    if "batch_norm" in name and given.get("training"):
        # instance norm is a batch norm of one row whose channels are all samples'
        first = next(iter(given.values()))
        return "batch statistics" if first.shape[0] > 1 else None
    if torch.Tag.nondeterministic_seeded not in func.tags:
        return None
    # attention and dropout have the tag also where they leave nothing out
    if given.get("dropout_p") == 0 or given.get("p") in (0, 1):
        return None
    if given.get("train", given.get("training", True)) is False:
        return None
    dropouts = ("dropout", "bernoulli", "attention", "rrelu")
    return "dropout" if any(word in name for word in dropouts) else "random"
