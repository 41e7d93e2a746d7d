"""The exercise of part 5.3: one optimizer step in float16, clipped and accumulated."""

import copy
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from labkit.chapters.ch05 import amp_answers as answers
from labkit.chapters.ch05.amp_answers import Batches
from labkit.chapters.ch05.number_formats import digits
from labkit.lesson.exercise import Exercise, Wrong, given

Answer = Callable[..., Any]
SCALE = 1024.0
LOOSE = 1e9  # a limit that no gradient here reaches
CLOSE = 0.03  # float16 has three digits


class Watched(nn.Module):
    """A small model that notes the dtype in which its layer computed."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(64, 10)
        self.computed: set[torch.dtype] = set()

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.layer(x)
        self.computed.add(out.dtype)
        return out


def small() -> tuple[Watched, torch.optim.SGD, torch.amp.GradScaler]:
    """A model, an optimizer whose step is the gradient, and a scaler with scale 1024."""
    torch.manual_seed(0)
    model = Watched()
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    return model, optimizer, torch.amp.GradScaler("cpu", init_scale=SCALE)


def micro_batches() -> Batches:
    """Two micro-batches of 20 mixed digits, and one of 4 zeros, twice as bright."""
    x, y = digits()
    zeros = (y == 0).nonzero().flatten()[:4]
    mixed = [(x[n : n + 20].clone(), y[n : n + 20].clone()) for n in (0, 20)]
    return [*mixed, (2 * x[zeros], y[zeros])]


def true_gradients(model: nn.Module, batches: Batches) -> list[Tensor]:
    """The gradients of the mean loss over all samples, in float32."""
    twin = copy.deepcopy(model)
    x, y = (torch.cat(parts) for parts in zip(*batches, strict=True))
    loss = F.cross_entropy(twin(x), y)
    return list(torch.autograd.grad(loss, list(twin.parameters())))


def length(tensors: list[Tensor]) -> float:
    return torch.cat([t.detach().flatten() for t in tensors]).norm().item()


def near(got: float, wanted: float) -> bool:
    return abs(got - wanted) <= CLOSE * abs(wanted)


def before_clipping(answer: Answer) -> None:
    """the norm that comes back, for micro-batches of 20, 20 and 4 samples"""
    model, optimizer, scaler = small()
    batches = micro_batches()
    wanted = length(true_gradients(model, batches))
    parts = [true_gradients(model, [batch]) for batch in batches]
    summed = length([torch.stack(grads).sum(0) for grads in zip(*parts, strict=True)])
    got = float(given(answer, model, optimizer, scaler, batches, LOOSE))
    said = f"the norm should be {wanted:.3g} and is {got:.3g}"
    assert not near(got, wanted * SCALE), (
        f"{said}, {SCALE:g} times as much: the gradients still carry the loss scale "
        "when they are clipped; what takes it off, and when?"
    )
    assert not near(got, wanted / SCALE), (
        f"{said}, {SCALE:g} times too small: unscaled, and never scaled. The backward "
        "has to start from the scaled loss"
    )
    assert not near(got, summed), (
        f"{said}: that is the sum of three mean losses; divide by what makes it the "
        "mean over all 44 samples"
    )
    assert not near(got, summed / 3), (
        f"{said}: that counts each micro-batch alike, although the last has 4 samples "
        "and the others have 20"
    )
    assert not near(got, length(parts[-1]) * 4 / 44), (
        f"{said}: that is the gradient of the last micro-batch alone; what happens to "
        "the sum between the micro-batches?"
    )
    assert near(got, wanted), said


def in_float16(answer: Answer) -> None:
    """the dtype in which the model computes"""
    model, optimizer, scaler = small()
    given(answer, model, optimizer, scaler, micro_batches(), LOOSE)
    names = ", ".join(sorted(str(d).removeprefix("torch.") for d in model.computed))
    hint = "is it inside autocast?"
    if torch.bfloat16 in model.computed:
        hint = "that is what autocast takes on a CPU unless it is told the dtype"
    assert model.computed == {torch.float16}, f"its layer computed in {names}: {hint}"


def clipped(answer: Answer) -> None:
    """a limit of half the gradient's norm, SGD with lr 1: how far the weights move"""
    model, optimizer, scaler = small()
    batches = micro_batches()
    limit = length(true_gradients(model, batches)) / 2
    moved = distance(answer, model, optimizer, scaler, batches, limit)
    assert near(moved, limit), (
        f"they should move by the limit, {limit:.3g}, and moved by {moved:.3g}: "
        f"{'nothing was clipped' if near(moved, 2 * limit) else 'look at the order'}"
    )


def below_the_limit(answer: Answer) -> None:
    """a limit of three times the gradient's norm: how far the weights move"""
    model, optimizer, scaler = small()
    batches = micro_batches()
    norm = length(true_gradients(model, batches))
    moved = distance(answer, model, optimizer, scaler, batches, 3 * norm)
    assert near(moved, norm), (
        f"a gradient below the limit is left as it is, {norm:.3g}; they moved by "
        f"{moved:.3g}: clipping shortens and never lengthens"
    )


def distance(
    answer: Answer,
    model: nn.Module,
    optimizer: Any,
    scaler: Any,
    batches: Batches,
    limit: float,
) -> float:
    before = [p.detach().clone() for p in model.parameters()]
    given(answer, model, optimizer, scaler, batches, limit)
    after = [p.detach() for p in model.parameters()]
    return length([a - b for a, b in zip(after, before, strict=True)])


def overflow(answer: Answer) -> None:
    """a pixel that is Inf: weights and loss scale after the step"""
    model, optimizer, scaler = small()
    batches = micro_batches()
    batches[1][0][0, 0] = float("inf")
    before = copy.deepcopy(model.state_dict())
    given(answer, model, optimizer, scaler, batches, LOOSE)
    kept = all(torch.equal(before[name], p) for name, p in model.state_dict().items())
    assert kept, (
        "the gradients are NaN, so the weights must stay as they are, and they "
        "changed: which step looks at what unscaling found?"
    )
    scale = scaler.get_scale()
    assert scale == SCALE / 2, (
        f"after a skipped step the loss scale is halved, to {SCALE / 2:g}; it is "
        f"{scale:g}: who tells the scaler that the step is over?"
    )


def twice(answer: Answer) -> None:
    """two steps in a row, with a loss scale of 1: the norm that the second one returns"""
    model, optimizer, _ = small()
    scaler = torch.amp.GradScaler("cpu", init_scale=1.0)  # a larger one hides the rest
    batches = micro_batches()
    given(answer, model, optimizer, scaler, batches, LOOSE)
    wanted = length(true_gradients(model, batches))
    got = float(given(answer, model, optimizer, scaler, batches, LOOSE))
    assert near(got, wanted), (
        f"it should be {wanted:.3g} and is {got:.3g}: gradients of the first step are "
        "still in it"
    )


EXERCISES: list[Exercise] = [
    Exercise(
        id="5.3-amp-step",
        title="one step in float16",
        minutes=10,
        difficulty="medium",
        deliver="amp_step(...): one optimizer step over a list of micro-batches",
        reference=answers.amp_step,
        tests=(before_clipping, in_float16, clipped, below_the_limit, overflow, twice),
        hints=(
            "Which of the calls belong to each micro-batch, and which come once, after "
            "the last?",
            "Once a micro-batch: forward and loss under autocast, `scaler.scale(loss)"
            ".backward()`. The loss is the sum over its samples, divided by the number "
            "of samples in all of them.",
            "Once, in this order: `scaler.unscale_(optimizer)`, `clip_grad_norm_` "
            "(which returns the norm before clipping), `scaler.step(optimizer)`, "
            "`scaler.update()`.",
        ),
        why=(
            "Gradients add up scaled, all with the same scale: that is why `update` "
            "waits for the end. `unscale_` takes the scale off once and notes any Inf or "
            "NaN, so that clipping sees true gradients and `scaler.step` can skip."
        ),
        wrong=(
            Wrong(answers.clips_scaled, "still carry the loss scale"),
            Wrong(answers.forgets_to_scale, "unscaled, and never scaled"),
            Wrong(answers.sum_of_means, "sum of three mean losses"),
            Wrong(answers.mean_of_means, "counts each micro-batch alike"),
            Wrong(answers.last_batch_only, "last micro-batch alone"),
            Wrong(answers.default_dtype, "unless it is told the dtype"),
            Wrong(answers.no_autocast, "is it inside autocast"),
            Wrong(answers.only_measures, "nothing was clipped"),
            Wrong(answers.always_that_long, "never lengthens"),
            Wrong(answers.plain_step, "which step looks at what unscaling found"),
            Wrong(answers.no_update, "who tells the scaler"),
            Wrong(answers.never_reset, "gradients of the first step"),
        ),
        variants=(answers.weighted_means,),
    )
]
