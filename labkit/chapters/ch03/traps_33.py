"""The traps of part 3.3, what cuts the gradient."""

import math

from labkit.chapters.ch03.claims_33 import CLAIMS
from labkit.lesson.symptom import raises, silent
from labkit.lesson.trap import Trap

__all__ = ["CLAIMS", "TRAPS"]

TRAPS = [
    Trap(
        number="3.3.1",
        slug="3.3-item-wrong-gradient",
        symptom=silent(
            lambda gradient: abs(float(gradient[0]) - 9) > 0.1,
            "no entry of x has the slope 9, which is twice the sum",
        ),
        question=(
            "The sum of `x` is 4.5, so `loss` is 4.5 · 4.5. Which gradient does "
            "`weigh()` return for each entry of `x`?"
        ),
        choices={
            "4.5": (
                "Right: `total` is the number 4.5 and no longer a function of `x`. "
                "Of the two ways from `x` to the loss, one is left."
            ),
            "9": (
                "That is the slope of the square of the sum. Autograd sees 4.5 · x: "
                "`.item()` handed it a number without a history."
            ),
            "`None`: `.item()` cuts the gradient": (
                "It cuts one way. The other, through the `x` in the product, is still "
                "recorded, and brings its share."
            ),
            "none: `backward` raises": (
                "It raises where no way to `x` is left. Here one is, so nothing looks "
                "amiss."
            ),
        },
        claims=("C3.3f",),
        core=True,
    ),
    Trap(
        number="3.3.2",
        slug="3.3-rebuilt-tensor-cuts",
        symptom=silent(
            lambda angle: abs(angle - 1) > 0.1,
            "the points were turned by 1, and the angle learned is",
        ),
        question=(
            "The angle starts at 0, and the points were turned by 1. At which angle "
            "does training end?"
        ),
        choices={
            "at 0: it never moves": (
                "Right: `torch.tensor` reads the numbers out of `c` and `s` and makes "
                "a new tensor without a history. Only `shift` was trained."
            ),
            "at about 1": (
                "It would with `torch.stack`. `torch.tensor` takes values and leaves "
                "the graph behind."
            ),
            "nowhere: the first `backward` raises": (
                "`shift` still needs a gradient, so there is something to do for "
                "`backward`, and no reason to raise."
            ),
            "somewhere between: `shift` does a part of the work": (
                "`shift` does what it can. But `angle.grad` is `None`, and the "
                "optimizer leaves such a parameter exactly where it is."
            ),
        },
        claims=("C3.3d",),
    ),
    Trap(
        number="3.3.3",
        slug="3.3-where-nan",
        symptom=silent(
            lambda gradient: any(map(math.isnan, gradient.tolist())),
            "y is finite everywhere, and its gradient is not",
        ),
        question=(
            "`y` is 0 and 1.386. Which gradient does `slopes()` return for the two "
            "entries of `x`?"
        ),
        choices={
            "`nan` and 0.25": (
                "Right: the branch that was not taken is differentiated too. Its slope "
                "at 0 is infinite, and 0 times infinity is NaN."
            ),
            "0 and 0.25": (
                "That is the right gradient. `where` does send a 0 into the branch not "
                "taken, but the logarithm multiplies it by 1/0."
            ),
            "`inf` and 0.25": (
                "1/0 is the slope of the logarithm at 0. It is multiplied by the 0 "
                "that `where` sends, and that product is not `inf`."
            ),
            "none: `backward` raises": (
                "Infinities and NaN are numbers like any other to autograd; only "
                "`set_detect_anomaly` makes it look."
            ),
        },
        claims=("C3.3g",),
        core=True,
    ),
    Trap(
        number="3.3.4",
        slug="3.3-detach-wrong-side",
        symptom=silent(
            lambda moved: moved["D"] > 0 and moved["G"] == 0,
            "how far one step moved the weights of the two",
        ),
        question="What moves in `gan_step()`, where each model has an optimizer?",
        choices={
            "`D` alone": (
                "Right: `fake` was detached where it was made, so there is no way from "
                "the generator's own loss back to the generator either."
            ),
            "`D` and `G`": (
                "`G` is behind the `detach`, in both losses. Its gradients stay "
                "`None`, and its optimizer has nothing to do."
            ),
            "`D`; then the backward for `G` raises": (
                "The loss of `G` depends on the weights of `D`, so `backward` has work "
                "to do: it fills their gradients, which nobody asked for."
            ),
            "`G` alone": (
                "`D` is fine: its loss needs `fake` as data only, and gets it."
            ),
        },
        claims=("C3.3e",),
    ),
    Trap(
        number="3.3.5",
        slug="3.3-numpy-round-trip",
        symptom=raises(RuntimeError, r"Can't call numpy\(\) on Tensor that requires"),
        question="What does `squash()` do?",
        choices={
            "it raises at `w.numpy()`": (
                "Right: an array cannot carry a graph, so a tensor that has one is not "
                "handed out. What the message then advises is the real trap."
            ),
            "it raises in `backward`": (
                "It does not come that far: the tensor refuses to become an array."
            ),
            "it returns the slope of tanh": (
                "Autograd records torch's operations. What NumPy computes it never "
                "sees."
            ),
            "it returns `None`: the gradient is cut in silence": (
                "Nearly: that is what happens once somebody follows the advice of the "
                "error message. As it stands, it raises."
            ),
        },
        claims=("C3.3c",),
    ),
]
