"""Answers to exercise 3.3-gan-step: the reference, another right one, and wrong ones."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.optim import Optimizer


def bce(score: Tensor, target: float) -> Tensor:
    """The binary cross-entropy of scores (logits) against one target for all."""
    return F.binary_cross_entropy_with_logits(score, torch.full_like(score, target))


def gan_step(
    G: nn.Module,
    D: nn.Module,
    real: Tensor,
    noise: Tensor,
    optimizer_g: Optimizer,
    optimizer_d: Optimizer,
) -> tuple[float, float]:
    fake = G(noise)
    loss_d = bce(D(real), 1.0) + bce(D(fake.detach()), 0.0)
    optimizer_d.zero_grad()
    loss_d.backward()
    optimizer_d.step()

    loss_g = bce(D(fake), 1.0)
    optimizer_g.zero_grad()
    loss_g.backward()
    optimizer_g.step()
    return loss_d.item(), loss_g.item()


def update(optimizer: Optimizer, loss: Tensor) -> None:
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def made_twice(G, D, real, noise, optimizer_g, optimizer_d):
    """Right: made under no_grad for D, and D is frozen while G learns."""
    with torch.no_grad():
        fake = G(noise)
    loss_d = bce(D(real), 1.0) + bce(D(fake), 0.0)
    update(optimizer_d, loss_d)
    D.requires_grad_(False)
    loss_g = bce(D(G(noise)), 1.0)
    update(optimizer_g, loss_g)
    D.requires_grad_(True)
    return loss_d.item(), loss_g.item()


def never_detached(G, D, real, noise, optimizer_g, optimizer_d):
    loss_d = bce(D(real), 1.0) + bce(D(G(noise)), 0.0)
    update(optimizer_d, loss_d)
    loss_g = bce(D(G(noise)), 1.0)
    update(optimizer_g, loss_g)
    return loss_d.item(), loss_g.item()


def always_detached(G, D, real, noise, optimizer_g, optimizer_d):
    fake = G(noise).detach()
    loss_d = bce(D(real), 1.0) + bce(D(fake), 0.0)
    update(optimizer_d, loss_d)
    loss_g = bce(D(fake), 1.0)
    update(optimizer_g, loss_g)
    return loss_d.item(), loss_g.item()


def d_not_reset(G, D, real, noise, optimizer_g, optimizer_d):
    fake = G(noise)
    loss_d = bce(D(real), 1.0) + bce(D(fake.detach()), 0.0)
    loss_d.backward()
    optimizer_d.step()
    loss_g = bce(D(fake), 1.0)
    update(optimizer_g, loss_g)
    return loss_d.item(), loss_g.item()


def g_not_reset(G, D, real, noise, optimizer_g, optimizer_d):
    fake = G(noise)
    loss_d = bce(D(real), 1.0) + bce(D(fake.detach()), 0.0)
    update(optimizer_d, loss_d)
    loss_g = bce(D(fake), 1.0)
    loss_g.backward()
    optimizer_g.step()
    return loss_d.item(), loss_g.item()


def left_frozen(G, D, real, noise, optimizer_g, optimizer_d):
    fake = G(noise)
    loss_d = bce(D(real), 1.0) + bce(D(fake.detach()), 0.0)
    update(optimizer_d, loss_d)
    D.requires_grad_(False)
    loss_g = bce(D(fake), 1.0)
    update(optimizer_g, loss_g)
    return loss_d.item(), loss_g.item()


def helps_the_other(G, D, real, noise, optimizer_g, optimizer_d):
    fake = G(noise)
    loss_d = bce(D(real), 1.0) + bce(D(fake.detach()), 0.0)
    update(optimizer_d, loss_d)
    loss_g = bce(D(fake), 0.0)
    update(optimizer_g, loss_g)
    return loss_d.item(), loss_g.item()


def labels_swapped(G, D, real, noise, optimizer_g, optimizer_d):
    fake = G(noise)
    loss_d = bce(D(real), 0.0) + bce(D(fake.detach()), 1.0)
    update(optimizer_d, loss_d)
    loss_g = bce(D(fake), 1.0)
    update(optimizer_g, loss_g)
    return loss_d.item(), loss_g.item()


def with_graphs(G, D, real, noise, optimizer_g, optimizer_d):
    fake = G(noise)
    loss_d = bce(D(real), 1.0) + bce(D(fake.detach()), 0.0)
    update(optimizer_d, loss_d)
    loss_g = bce(D(fake), 1.0)
    update(optimizer_g, loss_g)
    return loss_d, loss_g
