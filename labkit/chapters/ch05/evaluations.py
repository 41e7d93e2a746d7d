"""Answers to the exercise of part 5.1: two ways to be right, many to be wrong."""

import copy

import torch
from torch import nn
from torch.nn import functional as F

Loader = list[tuple[torch.Tensor, torch.Tensor]]


def evaluate(model: nn.Module, loader: Loader) -> float:
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    total, count = 0.0, 0
    try:
        with torch.no_grad():
            for x, y in loader:
                total += F.cross_entropy(model(x), y, reduction="sum").item()
                count += len(y)
    finally:
        for module, training in modes:
            module.training = training
    return total / count


def evaluate_a_copy(model: nn.Module, loader: Loader) -> float:
    quiet = copy.deepcopy(model).eval()
    with torch.inference_mode():
        losses = [F.cross_entropy(quiet(x), y, reduction="none") for x, y in loader]
    return float(torch.cat(losses).mean())


def evaluate_back_to_front(model: nn.Module, loader: Loader) -> float:
    trained = [module for module in model.modules() if module.training]
    model.eval()
    with torch.no_grad():
        sums = [F.cross_entropy(model(x), y) * len(y) for x, y in loader]
    for module in trained:
        module.training = True
    return sum(s.item() for s in sums) / sum(len(y) for _, y in loader)


def mean_loss(model: nn.Module, loader: Loader) -> float:
    """What most of the wrong answers get right."""
    losses = [F.cross_entropy(model(x), y).item() * len(y) for x, y in loader]
    return sum(losses) / sum(len(y) for _, y in loader)


@torch.no_grad()
def evaluate_in_train_mode(model: nn.Module, loader: Loader) -> float:
    return mean_loss(model, loader)


@torch.no_grad()
def evaluate_by_the_outer_flag(model: nn.Module, loader: Loader) -> float:
    was, model.training = model.training, False
    loss = mean_loss(model, loader)
    model.training = was
    return loss


@torch.no_grad()
def evaluate_and_stay(model: nn.Module, loader: Loader) -> float:
    model.eval()
    return mean_loss(model, loader)


@torch.no_grad()
def evaluate_then_train(model: nn.Module, loader: Loader) -> float:
    model.eval()
    loss = mean_loss(model, loader)
    model.train()
    return loss


@torch.no_grad()
def evaluate_with_one_flag(model: nn.Module, loader: Loader) -> float:
    was = model.training
    model.eval()
    loss = mean_loss(model, loader)
    model.train(was)
    return loss


def evaluate_recording(model: nn.Module, loader: Loader) -> float:
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    loss = mean_loss(model, loader)
    for module, training in modes:
        module.training = training
    return loss


def evaluate_off_for_good(model: nn.Module, loader: Loader) -> float:
    torch.set_grad_enabled(False)
    return evaluate(model, loader)


def evaluate_on_for_good(model: nn.Module, loader: Loader) -> float:
    loss = evaluate(model, loader)
    torch.set_grad_enabled(True)
    return loss


def evaluate_mean_of_means(model: nn.Module, loader: Loader) -> float:
    return sum(evaluate(model, [batch]) for batch in loader) / len(loader)


def evaluate_sum(model: nn.Module, loader: Loader) -> float:
    return sum(evaluate(model, [batch]) * len(batch[1]) for batch in loader)


def evaluate_as_tensor(model: nn.Module, loader: Loader) -> torch.Tensor:
    return torch.tensor(evaluate(model, loader))
