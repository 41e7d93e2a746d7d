"""Exercise 3.3-gan-step: each of two models gets the gradient of its own loss."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import SGD, Optimizer

from labkit.chapters.ch03 import gan_answers as other
from labkit.chapters.ch03.gan_answers import bce, gan_step
from labkit.lesson.exercise import Exercise, Wrong, given

Answer = Callable[..., Any]
RATE = 0.5


def pair() -> tuple[nn.Module, nn.Module]:
    """A generator and a discriminator, always the same."""
    torch.manual_seed(0)
    generator = nn.Linear(2, 2)
    return generator, nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 1))


def batch(seed: int) -> tuple[Tensor, Tensor]:
    """Eight real points and the noise for eight made ones."""
    seeded = torch.Generator().manual_seed(seed)
    real = torch.randn(8, 2, generator=seeded) + 2
    return real, torch.randn(8, 2, generator=seeded)


class Plain(SGD):
    """SGD whose name is enough for a report about a call."""

    def __repr__(self) -> str:
        return "SGD"


def optimizers(G: nn.Module, D: nn.Module) -> tuple[Optimizer, Optimizer]:
    return Plain(G.parameters(), lr=RATE), Plain(D.parameters(), lr=RATE)


def descend(model: nn.Module, loss: Tensor) -> None:
    """One step of gradient descent on the parameters of `model`, and nothing else."""
    parameters = list(model.parameters())
    for p, slope in zip(parameters, torch.autograd.grad(loss, parameters), strict=True):
        p.data -= RATE * slope


def expected(steps: int) -> tuple[nn.Module, nn.Module, list[tuple[float, float]]]:
    """The two models after right steps, and the losses of each step."""
    G, D = pair()
    losses = []
    for seed in range(steps):
        real, noise = batch(seed)
        loss_d = bce(D(real), 1.0) + bce(D(G(noise).detach()), 0.0)
        descend(D, loss_d)
        loss_g = bce(D(G(noise)), 1.0)
        descend(G, loss_g)
        losses.append((loss_d.item(), loss_g.item()))
    return G, D, losses


def run(answer: Answer, steps: int) -> tuple[nn.Module, nn.Module, list[Any]]:
    """The same with the learner's answer."""
    G, D = pair()
    optimizer_g, optimizer_d = optimizers(G, D)
    returned = [
        given(answer, G, D, *batch(seed), optimizer_g, optimizer_d)
        for seed in range(steps)
    ]
    return G, D, returned


def gap(one: nn.Module, other: nn.Module) -> float:
    """The largest difference between their parameters."""
    pairs = zip(one.parameters(), other.parameters(), strict=True)
    return max((a - b).abs().max().item() for a, b in pairs)


def discriminator(answer: Answer) -> None:
    """where the discriminator is after one step"""
    _, D, _ = run(answer, 1)
    assert gap(D, pair()[1]) > 0, "D has not moved: did its optimizer step?"
    assert gap(D, expected(1)[1]) < 1e-4, (
        "D is not where the gradient of its own loss leads: its loss is "
        "bce(D(real), 1.0) + bce(D(fake), 0.0), and it steps once"
    )


def generator(answer: Answer) -> None:
    """where the generator is after one step"""
    G, _, _ = run(answer, 1)
    start = pair()[0]
    assert gap(G, start) > 0, (
        "G has not moved at all: is its own loss computed from something detached?"
    )
    assert gap(G, expected(1)[0]) < 1e-4, (
        "G is not where the gradient of its own loss leads: that loss is "
        "bce(D(fake), 1.0), taken after D has stepped, and no other gradient may be in it"
    )


def kept_apart(answer: Answer) -> None:
    """that the discriminator's loss does not reach the generator"""
    G, D = pair()
    optimizer_g, optimizer_d = optimizers(G, D)
    leaked: list[bool] = []

    def look(*_: Any) -> None:
        grads = [p.grad for p in G.parameters() if p.grad is not None]
        leaked.append(any(bool(grad.any()) for grad in grads))

    hook = optimizer_d.register_step_pre_hook(look)
    given(answer, G, D, *batch(0), optimizer_g, optimizer_d)
    hook.remove()
    assert not any(leaked), (
        "when D steps, G has gradients already: D's loss went back through `fake` into "
        "G, for nothing at best"
    )


def second_step(answer: Answer) -> None:
    """the second step, with what the first has left behind"""
    _, D, _ = run(answer, 1)
    frozen = [name for name, p in D.named_parameters() if not p.requires_grad]
    assert not frozen, (
        f"after the step {frozen[0]} of D no longer requires a gradient: what is "
        "switched off for G's step is switched on again"
    )
    G, D, _ = run(answer, 2)
    right_g, right_d, _ = expected(2)
    assert gap(D, right_d) < 1e-4, (
        "after one step D is right, after two it is not: G's loss left gradients in D, "
        "and they were still there when D's turn came again"
    )
    assert gap(G, right_g) < 1e-4, (
        "after one step G is right, after two it is not: the gradients of its last "
        "step were still there"
    )


def losses(answer: Answer) -> None:
    """the two losses that are returned"""
    (returned,) = run(answer, 1)[2]
    right = expected(1)[2][0]
    both = isinstance(returned, tuple) and len(returned) == 2
    assert both, "two numbers are asked for, `loss_d.item(), loss_g.item()`"
    kept = [x for x in returned if isinstance(x, Tensor) and x.requires_grad]
    assert not kept, (
        "the losses came back with their graphs: who keeps them keeps every activation"
    )
    off = [abs(float(a) - b) for a, b in zip(returned, right, strict=True)]
    assert max(off) < 1e-3, (
        f"the losses should be {right[0]:.3f} and {right[1]:.3f}; "
        f"{float(returned[0]):.3f} and {float(returned[1]):.3f} came"
    )


EXERCISE = Exercise(
    id="3.3-gan-step",
    title="One step of a GAN",
    minutes=6,
    difficulty="medium",
    deliver="one step of the discriminator, then one of the generator, each by the "
    "gradient of its own loss",
    reference=gan_step,
    tests=(discriminator, generator, kept_apart, second_step, losses),
    hints=(
        "`fake` is used twice. For which of the two losses is it only data?",
        "`D(fake.detach())` in the discriminator's loss, `D(fake)` in the generator's.",
        "`loss_g.backward()` fills the gradients of D too. Who empties them, and when?",
    ),
    why="The discriminator's loss needs `fake` as data: detached, its backward ends "
    "there. The generator's loss goes through D into G, and leaves gradients in both; "
    "those in D are emptied before its next backward.",
    wrong=(
        Wrong(other.never_detached, "when D steps, G has gradients already"),
        Wrong(other.always_detached, "G has not moved at all"),
        Wrong(other.d_not_reset, "G's loss left gradients in D"),
        Wrong(other.g_not_reset, "the gradients of its last step were still there"),
        Wrong(other.left_frozen, "no longer requires a gradient"),
        Wrong(
            other.helps_the_other, "G is not where the gradient of its own loss leads"
        ),
        Wrong(
            other.labels_swapped, "D is not where the gradient of its own loss leads"
        ),
        Wrong(other.with_graphs, "the losses came back with their graphs"),
    ),
    variants=(other.made_twice,),
)
