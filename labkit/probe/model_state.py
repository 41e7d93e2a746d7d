"""A model's state, noted before code runs on it and put back afterwards, bit by bit."""

from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import nn

_CONTAINERS = (dict, list, set, deque)


class ModelState:
    """What a model's modules hold: noted once, put back as often as wanted.

    Noted are modes, parameters and buffers with their values, `requires_grad`, the
    attributes of every module, tensors and generators in them, and what stands in
    their lists, dicts and sets: hooks too. Not reached are objects of other kinds that
    a module holds, and what is outside of it.

    It takes the memory of the model's tensors a second time. Gradients are not copied:
    `WithoutGradients` takes them away for the while.

    Example:
        >>> state = ModelState(model)
        >>> model.eval()
        >>> state.put_back()
    """

    def __init__(self, model: nn.Module) -> None:
        self.modules = list(model.modules())
        self._modes = [module.training for module in self.modules]
        self._attributes = [
            dict(vars(module))
            for module in self.modules
            if not isinstance(module, torch.jit.ScriptModule)
        ]
        self._owners = [
            module
            for module in self.modules
            if not isinstance(module, torch.jit.ScriptModule)
        ]
        self._contents = [
            (value, value.copy())
            for attributes in self._attributes
            for value in attributes.values()
            if isinstance(value, _CONTAINERS)
        ]
        self._generators = [
            (value, value.get_state())
            for attributes in self._attributes
            for value in attributes.values()
            if isinstance(value, torch.Generator)
        ]
        self._tensors = {id(tensor): _Noted(tensor) for tensor in self._all_tensors()}

    def put_back(self) -> None:
        """Put everything back that is not as it was noted."""
        for module, attributes in zip(self._owners, self._attributes, strict=True):
            if not _same(vars(module), attributes):
                vars(module).clear()
                vars(module).update(attributes)
        for container, content in self._contents:
            _refill(container, content)
        for noted in self._tensors.values():
            noted.put_back()
        for generator, state in self._generators:
            generator.set_state(state)
        self.put_back_modes()

    def put_back_modes(self) -> None:
        """Put the modes back, and nothing else."""
        for module, training in zip(self.modules, self._modes, strict=True):
            if module.training != training:
                module.training = training

    def changed(self, tensors: Mapping[str, torch.Tensor]) -> list[str]:
        """Return the names of those noted tensors that have other values now."""
        return [
            name
            for name, tensor in tensors.items()
            if id(tensor) in self._tensors and self._tensors[id(tensor)].changed()
        ]

    def _all_tensors(self) -> Iterator[torch.Tensor]:
        seen: set[int] = set()
        for module, attributes in zip(self._owners, self._attributes, strict=True):
            held = [*module._parameters.values(), *module._buffers.values()]
            for value in attributes.values():
                inside = value.values() if isinstance(value, dict) else value
                held += inside if isinstance(value, _CONTAINERS) else [value]
            for tensor in held:
                if isinstance(tensor, torch.Tensor) and id(tensor) not in seen:
                    seen.add(id(tensor))
                    yield tensor
        for module in self.modules:
            if isinstance(module, torch.jit.ScriptModule):
                yield from module.parameters(recurse=False)
                yield from module.buffers(recurse=False)


class _Noted:
    """One tensor with its values."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor
        self._needs_grad = tensor.requires_grad
        # shares the memory and not the version counter: a graph that waits for its
        # backward does not see what is put back as an edit
        self._alias = tensor.data
        self._values = self._alias.clone()
        self._version = tensor._version if not tensor.is_inference() else None

    def changed(self) -> bool:
        now = self.tensor.data
        if now.shape != self._values.shape or now.dtype != self._values.dtype:
            return True
        if now.is_meta or now.layout != torch.strided:
            return False
        if torch.equal(now, self._values):
            return False
        # the same NaN is no change
        same = (now == self._values) | ((now != now) & (self._values != self._values))
        return not bool(same.all())

    def put_back(self) -> None:
        tensor, alias = self.tensor, self._alias
        if alias.layout == torch.strided and not alias.is_meta:
            written = self._version is not None and tensor._version != self._version
            if written or not torch.equal(alias, self._values):
                alias.copy_(self._values)
        # `.to()` and `.data = ` put other memory under the same tensor
        now = (tensor.data_ptr(), tensor.shape, tensor.stride(), tensor.dtype)
        if now != (alias.data_ptr(), alias.shape, alias.stride(), alias.dtype):
            tensor.data = alias
        if tensor.requires_grad != self._needs_grad and tensor.is_leaf:
            tensor.requires_grad_(self._needs_grad)


class WithoutGradients:
    """Take the gradients of a model's parameters away for a block.

    Code in the block can neither add to them nor reset them.

    Example:
        >>> with WithoutGradients(model):
        ...     model(x).sum().backward()
    """

    def __init__(self, model: nn.Module) -> None:
        self._parameters = list(model.parameters())

    def __enter__(self) -> None:
        self._grads = [parameter.grad for parameter in self._parameters]
        for parameter in self._parameters:
            parameter.grad = None

    def __exit__(self, *error: object) -> None:
        for parameter, grad in zip(self._parameters, self._grads, strict=True):
            parameter.grad = grad


def _same(now: dict[str, Any], noted: dict[str, Any]) -> bool:
    return list(now) == list(noted) and all(now[k] is noted[k] for k in noted)


def _refill(container: Any, content: Any) -> None:
    if isinstance(container, dict):
        if _same(container, content):
            return
        container.clear()
        container.update(content)
    elif isinstance(container, set):
        if container != content:
            container.clear()
            container.update(content)
    elif len(container) != len(content) or any(
        a is not b for a, b in zip(container, content, strict=True)
    ):
        container.clear()
        container.extend(content)
