"""The exercises of part 5.1."""

import copy
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from labkit.chapters.ch05 import evaluations
from labkit.chapters.ch05.evaluations import Loader
from labkit.lesson.exercise import Exercise, Wrong, given

Answer = Callable[..., Any]
FROZEN = "0.1"  # the module that the test model holds in eval mode


def some_model() -> nn.Sequential:
    """A frozen BatchNorm inside a block, in eval mode; the rest in train mode."""
    block = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Dropout(0.5))
    model = nn.Sequential(block, nn.BatchNorm1d(8), nn.Linear(8, 3))
    model.get_submodule(FROZEN).requires_grad_(False).eval()
    return model


def some_batches(*sizes: int) -> Loader:
    """Batches of these sizes, the later ones harder than the first."""
    return [
        (torch.randn(size, 6) + 3 * number, torch.full((size,), number % 3))
        for number, size in enumerate(sizes)
    ]


def right_loss(model: nn.Module, loader: Loader) -> float:
    """The mean over all images at once, on a copy."""
    quiet = copy.deepcopy(model).eval()
    x, y = (torch.cat(parts) for parts in zip(*loader, strict=True))
    with torch.no_grad():
        return F.cross_entropy(quiet(x), y).item()


def modes(model: nn.Module) -> dict[str, bool]:
    return {name: module.training for name, module in model.named_modules()}


def noting_forwards(model: nn.Module, note: Callable[[], Any]) -> list[Any]:
    """A list that gets `note()` each time the model, or a copy of it, is called."""
    noted: list[Any] = []
    model.register_forward_pre_hook(lambda module, _: noted.append(note()))
    return noted


def one_number(answer: Answer) -> None:
    """one Python float"""
    got = given(answer, some_model(), some_batches(4, 4))
    assert isinstance(got, float), (
        f"a Python float is wanted, and a {type(got).__name__} came out: which call "
        "turns a tensor with one value into a number?"
    )


def in_eval_mode(answer: Answer) -> None:
    """the whole model is in eval mode while it is measured"""
    model = some_model()
    seen: list[tuple[str, bool]] = []
    for name, module in model.named_modules():
        module.register_forward_pre_hook(
            lambda m, _, name=name: seen.append((name, m.training))
        )
    given(answer, model, some_batches(4))
    assert seen, "the model was never called"
    training = [name for name, was in seen if was]
    assert not training or "" in training, (
        f"the model itself was in eval mode, and its module {training[0]!r} was not: "
        "`model.training = False` reaches no module below"
    )
    assert not training, (
        "it was called in train mode: Dropout drew, and BatchNorm collected"
    )


def without_gradients(answer: Answer) -> None:
    """no gradients are recorded meanwhile"""
    model = some_model()
    recording = noting_forwards(model, torch.is_grad_enabled)
    given(answer, model, some_batches(4, 4))
    assert not any(recording), (
        "a graph was recorded in each forward, and kept what a backward would need: "
        "eval mode does not stop that"
    )


def recorded_again(answer: Answer) -> None:
    """gradients are recorded again afterwards, if they were before"""
    for before in (True, False):
        torch.set_grad_enabled(before)
        given(answer, some_model(), some_batches(4))
        after = torch.is_grad_enabled()
        torch.set_grad_enabled(True)
        assert after is before, (
            f"recording was {'on' if before else 'off'} before the call and is "
            f"{'on' if after else 'off'} after it: which form ends with its block?"
        )


def modes_put_back(answer: Answer) -> None:
    """every module is in the mode in which it was"""
    for training in (False, True):
        model = some_model() if training else some_model().eval()
        before = modes(model)
        given(answer, model, some_batches(4, 4))
        after = modes(model)
        assert after[""] is before[""], (
            f"the model itself was in {mode(before[''])} mode before the call and is in "
            f"{mode(after[''])} mode after it"
        )
        assert after[FROZEN] is before[FROZEN], (
            f"the frozen BatchNorm, module {FROZEN!r}, was in eval mode before and is in "
            "train mode now: one flag for the whole model cannot tell it from the rest"
        )
        other = [name for name in before if after[name] is not before[name]]
        assert not other, (
            f"module {other[0]!r} was in {mode(before[other[0]])} mode before and is in "
            f"{mode(after[other[0]])} mode now"
        )


def mode(training: bool) -> str:
    return "train" if training else "eval"


def each_image_once(answer: Answer) -> None:
    """each image counts the same, also in a smaller batch"""
    model, loader = some_model(), some_batches(8, 8, 2)
    want = right_loss(model, loader)
    got = given(answer, model, loader)
    means = [right_loss(model, [batch]) for batch in loader]
    total = sum(m * len(y) for m, (_, y) in zip(means, loader, strict=True))
    assert not near(got, sum(means) / 3), (
        f"{got:.3f} is the mean of the three batches' means, where the two images of the "
        f"last batch count four times as much as the others; the mean per image is "
        f"{want:.3f}"
    )
    assert not near(got, total), (
        f"{got:.3f} is the sum over the 18 images; the mean per image is {want:.3f}"
    )
    assert near(got, want), f"the mean per image is {want:.3f}, and {got:.3f} came out"


def near(one: float, other: float) -> bool:
    return abs(one - other) < 1e-3 * max(1.0, abs(other))


EXERCISES: list[Exercise] = [
    Exercise(
        id="5.1-evaluate",
        title="An evaluation that leaves no trace",
        minutes=10,
        difficulty="medium",
        deliver="the mean cross-entropy per image as a float, measured in eval mode and "
        "without gradients, with every module's mode put back",
        reference=evaluations.evaluate,
        tests=(
            one_number,
            in_eval_mode,
            without_gradients,
            recorded_again,
            modes_put_back,
            each_image_once,
        ),
        hints=(
            "After `model.eval()` all flags are False. What must be noted before it, and "
            "of which modules?",
            "`model.modules()` gives every module once, the model itself too; each has "
            "its own `training`, which can be read and set.",
            'For the mean: add up `F.cross_entropy(..., reduction="sum")` and the number '
            "of images, and divide at the end.",
        ),
        why="Modes belong to modules, so each is noted and put back; `finally` does that "
        "too when an evaluation is interrupted. Setting `module.training` touches that "
        "module alone, where `module.train(...)` reaches all below it. Sums over images, "
        "not means over batches, make every image count the same.",
        wrong=(
            Wrong(evaluations.evaluate_as_tensor, "a Python float is wanted"),
            Wrong(evaluations.evaluate_in_train_mode, "it was called in train mode"),
            Wrong(evaluations.evaluate_by_the_outer_flag, "reaches no module below"),
            Wrong(evaluations.evaluate_recording, "eval mode does not stop that"),
            Wrong(evaluations.evaluate_off_for_good, "is off after it"),
            Wrong(evaluations.evaluate_on_for_good, "is on after it"),
            Wrong(evaluations.evaluate_and_stay, "itself was in train mode before"),
            Wrong(evaluations.evaluate_then_train, "itself was in eval mode before"),
            Wrong(evaluations.evaluate_with_one_flag, "one flag for the whole model"),
            Wrong(
                evaluations.evaluate_mean_of_means,
                "the mean of the three batches' means",
            ),
            Wrong(evaluations.evaluate_sum, "the sum over the 18 images"),
        ),
        variants=(evaluations.evaluate_a_copy, evaluations.evaluate_back_to_front),
    ),
]
