"""What a training step changes, noted before it runs and put back afterwards."""

import copy
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer

_PLAIN = (bool, int, float, complex, str, bytes, type(None))


class Keeper:
    """Notes objects when they are first met, and puts all of them back in the end.

    Reached are: parameters with their gradients and `requires_grad`, buffers, modes and
    plain numbers of modules; optimizers with their state and groups; GradScalers and
    schedulers; the grad mode.
    """

    def __init__(self) -> None:
        self._undo: list[Callable[[], Any]] = []
        self._met: dict[int, Any] = {}
        self._leaves: dict[int, torch.Tensor] = {}
        self._states: list[tuple[Optimizer, dict[torch.Tensor, dict[str, Any]]]] = []
        self._saved: dict[int, torch.Tensor] = {}
        grad = torch.is_grad_enabled()
        self._undo.append(lambda: torch.set_grad_enabled(grad))

    def restore(self) -> None:
        """Put everything back, the last met first."""
        for put in reversed(self._undo):
            put()

    def rewind(self) -> None:
        """Put everything back for another run, which writes into copies again."""
        self.restore()
        for leaf in self._leaves.values():
            if leaf.grad is not None:
                leaf.grad = leaf.grad.detach().clone()
        for optimizer, states in self._states:
            for parameter, state in states.items():
                optimizer.state[parameter] = _copied(state)

    def moved(self, tensor: torch.Tensor) -> bool:
        """Return whether a kept tensor has other values now than when it was met."""
        return not torch.equal(self._saved[id(tensor)], tensor.detach())

    def tensor(self, tensor: torch.Tensor) -> None:
        """Keep a tensor's values."""
        if not self._first(tensor):
            return
        # `.data` writes past the version counter: graphs that saved it stay valid
        alias = tensor.data
        saved = alias.clone()
        self._saved[id(tensor)] = saved

        def put() -> None:
            _without_repeats(alias).copy_(_without_repeats(saved))
            if tensor.data_ptr() != alias.data_ptr():
                tensor.data = alias

        self._undo.append(put if alias.layout == torch.strided else lambda: None)

    def parameter(self, parameter: torch.Tensor) -> None:
        """Keep a leaf: its values, its `requires_grad`, its gradient."""
        self.tensor(parameter)
        self.gradient(parameter)

    def gradient(self, leaf: torch.Tensor) -> None:
        """Keep a leaf's gradient, and give it a copy to write into until then."""
        if id(leaf) in self._leaves:
            return
        self._leaves[id(leaf)] = leaf
        grad, needed = leaf.grad, leaf.requires_grad
        if grad is not None:
            leaf.grad = grad.detach().clone()

        def put() -> None:
            if leaf.requires_grad != needed:
                leaf.requires_grad_(needed)
            leaf.grad = grad

        self._undo.append(put)

    def module(self, module: nn.Module) -> None:
        """Keep one module's own parameters, buffers, mode and plain attributes."""
        if not self._first(module):
            return
        parameters, buffers = dict(module._parameters), dict(module._buffers)
        plain = {k: v for k, v in vars(module).items() if isinstance(v, _PLAIN)}

        def put() -> None:
            module._parameters.update(parameters)
            module._buffers.update(buffers)
            vars(module).update(plain)

        self._undo.append(put)
        for parameter in parameters.values():
            if parameter is not None:
                self.parameter(parameter)
        for buffer in buffers.values():
            if buffer is not None:
                self.tensor(buffer)

    def optimizer(self, optimizer: Optimizer) -> None:
        """Keep an optimizer's state and groups, and the parameters that it holds."""
        if not self._first(optimizer):
            return
        groups = list(optimizer.param_groups)
        settings = [
            {key: _copied(value) for key, value in group.items() if key != "params"}
            for group in groups
        ]
        held = [list(group["params"]) for group in groups]
        # the optimizer goes on with copies: put back are the very tensors it had
        states = {parameter: dict(s) for parameter, s in optimizer.state.items()}
        for parameter, state in states.items():
            optimizer.state[parameter] = _copied(state)
        self._states.append((optimizer, states))
        plain = {k: v for k, v in vars(optimizer).items() if isinstance(v, _PLAIN)}

        def put() -> None:
            vars(optimizer).update(plain)
            optimizer.param_groups[:] = groups
            for group, saved, parameters in zip(groups, settings, held, strict=True):
                group.clear()
                group.update(params=list(parameters), **_copied(saved))
            optimizer.state.clear()
            optimizer.state.update(states)

        self._undo.append(put)
        for parameters in held:
            for parameter in parameters:
                self.parameter(parameter)

    def attributes(self, thing: Any) -> None:
        """Keep the attributes of a GradScaler or scheduler, their containers copied."""
        if not self._first(thing):
            return
        saved = {key: _copied(value) for key, value in vars(thing).items()}

        def put() -> None:
            vars(thing).clear()
            vars(thing).update(_copied(saved))

        self._undo.append(put)

    def _first(self, thing: Any) -> bool:
        if id(thing) in self._met:
            return False
        self._met[id(thing)] = thing  # held: its id must not be given to another
        return True


def _copied(value: Any) -> Any:
    """Return a copy of a container or tensor; other objects are returned themselves."""
    if isinstance(value, torch.Tensor):
        return value.detach().clone()
    if isinstance(value, dict):
        copied = copy.copy(value)
        copied.update({key: _copied(part) for key, part in value.items()})
        return copied
    if type(value) in (list, tuple):
        return type(value)(_copied(part) for part in value)
    return copy.copy(value) if isinstance(value, set) else value


def _without_repeats(tensor: torch.Tensor) -> torch.Tensor:
    """Return a view with each memory cell of an expanded tensor once."""
    for axis, stride in enumerate(tensor.stride()):
        if stride == 0 and tensor.shape[axis] > 1:
            tensor = tensor.narrow(axis, 0, 1)
    return tensor
