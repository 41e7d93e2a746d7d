"""Forwards in evaluation mode, from one random state or another."""

from typing import Any

import torch
from torch import nn

from labkit.probe.mode_watch import Seen, Watch
from labkit.probe.model_state import ModelState
from labkit.probe.nested import copied, tensors
from labkit.probe.rng import seed_all


class Refused(Exception):
    """The model raised on the inputs; its cause is what the model said."""


class EvalForward:
    """Runs a model on inputs with every module in evaluation mode.

    The modes are set module by module: a model's own `train()` may do more than that.
    What a forward changes in the model is put back after each.
    """

    def __init__(self, model: nn.Module, inputs: Any, state: ModelState) -> None:
        self._model = model
        self._inputs = inputs
        self._state = state
        self._with_grad = False
        self._buffers = dict(model.named_buffers())
        self.changed: dict[str, None] = {}  # buffers that a forward has changed

    def __call__(self, seed: int, inputs: Any = None) -> list[torch.Tensor]:
        """Return the tensors of the output, copied; `Refused` where it raises."""
        for module in self._state.modules:
            if module.training:
                module.training = False
        given = copied(self._inputs if inputs is None else inputs)
        try:
            seed_all(seed)
            found = [
                t.detach().clone() if t.layout == torch.strided else t.to_dense()
                for t in tensors(self._run(given))
            ]
            self.changed.update(dict.fromkeys(self._state.changed(self._buffers)))
            return found
        finally:
            self._state.put_back()

    def _run(self, inputs: Any) -> Any:
        try:
            with torch.set_grad_enabled(self._with_grad):
                return called(self._model, inputs)
        except RuntimeError as error:
            # a model that takes derivatives in its forward needs them recorded
            if self._with_grad or "grad" not in str(error):
                raise Refused from error
            self._with_grad = True
            return self._run(inputs)
        except Exception as error:
            raise Refused from error

    def watched(self, seed: int) -> list[Seen]:
        """Run once and return what in it is random, or reads the batch's statistics."""
        watch = Watch(self._model)
        with watch:
            self(seed)
        return list(dict.fromkeys(watch.seen))


def called(model: nn.Module, inputs: Any) -> Any:
    """Call a model: a tuple gives positional arguments, a dict ones with names."""
    if isinstance(inputs, dict):
        return model(**inputs)
    # a named tuple, such as a packed sequence, is one argument
    if type(inputs) is tuple:
        return model(*inputs)
    return model(inputs)
