"""The names of a model's tensors and modules, of those too that it doesn't register."""

from typing import Any

import torch
from torch import nn

_INTERNAL = frozenset(vars(nn.Module()))  # what every module has
_DEEPEST, _MOST = 4, 10_000


class Known:
    """What is called what, by `id`; the objects are held, so that ids stay theirs.

    Attributes:
        parameters: the model's parameters by their first name.
        also: further names of a shared parameter, by its first.
        hidden: tensors with gradients and parameters that stand in attributes of
            the model's modules but are not registered, by name.
    """

    def __init__(self, model: nn.Module) -> None:
        self.model = model
        self.parameters: dict[str, torch.Tensor] = {}
        self.also: dict[str, tuple[str, ...]] = {}
        self.hidden: dict[str, torch.Tensor] = {}
        self._tensor_names: dict[int, str] = {}
        self._modules: dict[int, tuple[str, nn.Module]] = {}
        for name, parameter in model.named_parameters(remove_duplicate=False):
            first = self._tensor_names.setdefault(id(parameter), name)
            if first == name:
                self.parameters[name] = parameter
            else:
                self.also[first] = (*self.also.get(first, ()), name)
        for name, module in model.named_modules():
            self._modules[id(module)] = (name, module)
        self._visited: dict[int, Any] = {}
        for name, module in list(self._modules.values()):
            self._look_into(module, name)

    def name(self, tensor: torch.Tensor) -> str | None:
        """Return the tensor's name, or None for a stranger."""
        return self._tensor_names.get(id(tensor))

    def module(self, module: nn.Module) -> str:
        """Return the module's name in the model, or what kind it is."""
        name, _ = self._modules.get(id(module), ("", module))
        return name or type(module).__name__

    def modules(self) -> list[nn.Module]:
        """Return the modules that are known, unregistered ones included."""
        return [module for _, module in self._modules.values()]

    def _look_into(self, owner: Any, name: str) -> None:
        for key, value in vars(owner).items():
            if isinstance(owner, nn.Module) and key in _INTERNAL:
                continue
            self._look_at(value, f"{name}.{key}" if name else key, 1)

    def _look_at(self, value: Any, name: str, depth: int) -> None:
        if isinstance(value, torch.Tensor):
            if value.is_leaf and value.requires_grad and self.name(value) is None:
                self._tensor_names[id(value)] = name
                self.hidden[name] = value
            return
        if id(value) in self._visited or len(self._visited) > _MOST or depth > _DEEPEST:
            return
        if isinstance(value, list | tuple | dict | set | nn.Module):
            self._visited[id(value)] = value
        if isinstance(value, dict):
            for key, part in list(value.items()):
                self._look_at(part, f"{name}[{key!r}]", depth + 1)
        elif isinstance(value, list | tuple | set):
            for place, part in enumerate(value):
                self._look_at(part, f"{name}[{place}]", depth + 1)
        elif isinstance(value, nn.Module) and id(value) not in self._modules:
            for inner, module in value.named_modules(prefix=name):
                self._modules.setdefault(id(module), (inner, module))
            for inner, parameter in value.named_parameters(prefix=name):
                self._look_at(parameter, inner, depth)
            for inner, module in value.named_modules(prefix=name):
                self._look_into(module, inner)
        elif type(value).__module__ == type(self.model).__module__:
            # a helper object of the learner's own
            self._visited[id(value)] = value
            for key, part in list(getattr(value, "__dict__", {}).items()):
                self._look_at(part, f"{name}.{key}", depth + 1)
