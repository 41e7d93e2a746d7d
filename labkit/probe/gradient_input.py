"""What `gradient_report` accepts, and the sentences for all else."""

from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler


def checked(model: Any, loss: Any, optimizer: Any, step: Any) -> list[Optimizer]:
    """Return the optimizers that were given, or raise on an argument that is none."""
    if not isinstance(model, nn.Module):
        raise _refusal("model", model, "a torch.nn.Module")
    parameters = list(model.named_parameters())
    if not parameters:
        raise ValueError(
            f"gradient_report: {type(model).__name__} has no parameters, so there are "
            "no gradients to report: give a model that registers its layers."
        )
    for name, parameter in parameters:
        if isinstance(parameter, nn.parameter.UninitializedParameter):
            raise ValueError(
                f"gradient_report: {name} belongs to a lazy module and has no shape "
                "yet: run the model once on a batch first."
            )
    if step is not None and not callable(step):
        raise _refusal("step", step, "a function without arguments or None")
    if loss is not None and not isinstance(loss, torch.Tensor) and not callable(loss):
        accepted = "a scalar tensor, a function that returns one, or None"
        raise _refusal("loss", loss, accepted)
    if isinstance(loss, torch.Tensor) and loss.numel() != 1:
        raise ValueError(
            "gradient_report: loss is a scalar, and got a tensor of shape "
            f"{tuple(loss.shape)}: reduce it, with mean() for example."
        )
    optimizers = list(optimizer) if isinstance(optimizer, list | tuple) else [optimizer]
    for one in optimizers:
        if isinstance(one, LRScheduler):
            raise TypeError(
                f"gradient_report: optimizer is a torch.optim.Optimizer, and got "
                f"{type(one).__name__}, a scheduler: give its .optimizer."
            )
        if one is not None and not isinstance(one, Optimizer):
            accepted = "a torch.optim.Optimizer, a list of them, or None"
            raise _refusal("optimizer", one, accepted)
    return [one for one in optimizers if one is not None]


def _refusal(name: str, came: Any, accepted: str) -> TypeError:
    shown = type(came).__name__
    return TypeError(f"gradient_report: {name} is {accepted}, and got {shown}.")
