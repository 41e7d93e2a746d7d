"""The traps of part 2.2, broadcasting and in-place."""

from labkit.chapters.ch02.claims_22 import CLAIMS
from labkit.lesson.costs import heavier
from labkit.lesson.symptom import raises, silent
from labkit.lesson.trap import Trap

__all__ = ["CLAIMS", "TRAPS"]

TRAPS = [
    Trap(
        number="2.2.1",
        slug="2.2-loss-shape",
        symptom=silent(
            lambda left: left > 0.8, "share of the variance of y that is left"
        ),
        question=(
            "What does `train()` return, where 1 is a model that always answers the "
            "mean and 0 a model without error?"
        ),
        choices={
            "about 1: it learned nothing but the mean": (
                "Right: the loss compared every prediction with every target, and the "
                "mean is the best answer to all of them at once."
            ),
            "about 0.1: it learned to read most of the digits": (
                "It would with `(N,)` on both sides. `(N, 1) - (N,)` is `(N, N)`: each "
                "prediction is compared with every target of the batch."
            ),
            "nothing: the shapes do not fit and it raises": (
                "Broadcasting finds a common shape for `(N, 1)` and `(N,)`, so there is "
                "nothing to raise about."
            ),
            "`nan`: the loss runs away": (
                "The loss stays finite. It even falls, as far as the variance of y, "
                "which is the loss of always answering the mean."
            ),
        },
        claims=("E2.1",),
        core=True,
    ),
    Trap(
        number="2.2.2",
        slug="2.2-pairwise-temporaries",
        symptom=heavier(10),
        question=(
            "The result is 500 × 500 numbers, 1 MB. How much memory do the tensors of "
            "`distances()` take at the worst moment?"
        ),
        choices={
            "about 128 MB": (
                "Right: the difference and its square have 500 × 500 × 64 numbers each, "
                "and both are there when the square is taken."
            ),
            "about 1 MB: broadcasting copies nothing": (
                "It copies no operand. But the subtraction has a result, and that has "
                "three axes: 64 MB, and its square has as much."
            ),
            "about 2 MB: the result and one helper of its size": (
                "The helpers are not of the result's size: they still have the axis of "
                "64 features, which only `sum(-1)` takes away."
            ),
            "about 64 MB": (
                "One tensor of three axes is 64 MB. At the worst moment there are two: "
                "the difference and its square."
            ),
        },
        claims=("C2.2c",),
    ),
    Trap(
        number="2.2.3",
        slug="2.2-matmul-broadcast-copies",
        symptom=heavier(2.5),
        question=(
            "The result is 16.8 MB; `tokens` has 2.1 MB, `heads` 0.5 MB. How much new "
            "memory does `per_head()` take at the worst moment?"
        ),
        choices={
            "about 50 MB: three times the result": (
                "Right: `tokens` is written out 8 times and `heads` 32 times, each as "
                "large as the result, before the multiplication starts."
            ),
            "about 17 MB: the result and nothing else": (
                "That is how elementwise operations broadcast. `matmul` hands its "
                "operands to a batched multiplication that takes no broadcasting."
            ),
            "about 34 MB: `heads` is copied for every sentence": (
                "`tokens` is copied too: once for every head. Both copies have the "
                "result's 32 × 8 matrices."
            ),
            "nothing new: it returns a view": (
                "A product has values that are in neither operand, so at least the "
                "result is new memory."
            ),
        },
        claims=("C2.2b", "C2.2d"),
    ),
    Trap(
        number="2.2.4",
        slug="2.2-inplace-saved-output",
        symptom=raises(RuntimeError, r"modified by an inplace operation"),
        question="What does `block()` do?",
        choices={
            "it raises in `backward`": (
                "Right: ReLU kept its result to know where the gradient passes, and the "
                "addition wrote over that result."
            ),
            "it raises at `h += x`": (
                "At that line nothing is wrong yet: the edit is recorded and the "
                "version goes up. Only `backward` finds out that it needed the old "
                "values."
            ),
            "it returns the right gradient: adding changes no slope": (
                "Adding changes no slope, but ReLU's backward looks at ReLU's result "
                "to see where it was positive, and that is gone."
            ),
            "it returns a wrong gradient without a word": (
                "The version counter is there to prevent that: a value saved at "
                "version 0 and found at version 1 is refused."
            ),
        },
        claims=("C2.2f",),
        core=True,
    ),
    Trap(
        number="2.2.5",
        slug="2.2-data-bypass",
        symptom=silent(
            lambda gradient: abs(float(gradient[1]) - 5) < 1e-3,
            "no function here has slope 5 at x = 2",
        ),
        question="What is the second entry of the gradient that `limited()` returns?",
        choices={
            "5: the limit itself": (
                "Right: `exp` saved its result as its slope, and the edit through "
                "`.data` changed the saved values without changing their version."
            ),
            "0: above the limit nothing changes": (
                "That is the slope of a recorded `clamp`. Through `.data` autograd "
                "never hears of the limit."
            ),
            "7.389: the slope of `exp` at 2": (
                "That would be right if `.data` were a copy. It is the same memory, "
                "and `exp` keeps its slope there."
            ),
            "nothing: `backward` raises": (
                "It would after an edit through `.detach()`. `.data` has a version "
                "counter of its own, so the check sees no edit."
            ),
        },
        claims=("C2.2g",),
    ),
    Trap(
        number="2.2.6",
        slug="2.2-inplace-under-no-grad",
        symptom=silent(
            lambda seen: seen["loss"] == 30 and seen["gradient"] == 3,
            "loss is 30 · w, and its gradient should be 30",
        ),
        question="`loss` is 30 times `w`. Which gradient does `scale()` return?",
        choices={
            "3": (
                "Right: the graph holds the factor 3. The factor 10 was applied while "
                "nothing was recorded."
            ),
            "30": (
                "The value is 30 · w, but the graph has only what was recorded, and "
                "under `no_grad` nothing is."
            ),
            "0 or `None`: `no_grad` cuts the gradient": (
                "`no_grad` cuts what is made inside it. `h` was made before, keeps its "
                "`grad_fn`, and the gradient still flows through it."
            ),
            "none: `backward` raises, since the version changed": (
                "The version of `h` went up, but no operation saved `h`, so nothing is "
                "compared."
            ),
        },
        claims=("C2.2j",),
        core=True,
    ),
]
