"""The traps of part 3.2, accumulation and zeroing."""

from labkit.chapters.ch03.claims_32 import CLAIMS
from labkit.lesson.symptom import raises, silent
from labkit.lesson.trap import Trap

__all__ = ["CLAIMS", "TRAPS"]

OFF = "distance from the big batch's gradient, where 1 is the length of that"

TRAPS = [
    Trap(
        number="3.2.1",
        slug="3.2-zero-in-the-gap",
        symptom=silent(
            lambda losses: losses[0] == losses[1],
            "the first and the last of 100 losses",
        ),
        question="Which first and last loss does `train()` return?",
        choices={
            "`[2.3, 2.3]`: nothing was learned": (
                "Right: `step` found no gradient to go by. A parameter without one is "
                "skipped, in silence."
            ),
            "`[2.3, 0.5]`: it learned": (
                "It would with any of three other places for `zero_grad`. Here the "
                "gradients are gone before anybody has used them."
            ),
            "none: `step` raises, for it needs gradients": (
                "A parameter may rightly have no gradient (an unused branch, a frozen "
                "layer), so `step` passes over it."
            ),
            "`[2.3, nan]`: gradients add up until it explodes": (
                "They do not add up: they are cleared once in every round, at the wrong "
                "moment."
            ),
        },
        claims=("C3.2a",),
        core=True,
    ),
    Trap(
        number="3.2.2",
        slug="3.2-partial-window",
        symptom=silent(
            lambda found: max(found["updates"]) > 4 or found["left"] > 0,
            "batches in each update, and batches that were never used",
        ),
        question=(
            "Ten batches an epoch, two epochs. How many batches go into each update?"
        ),
        choices={
            "4, 4, then 6, 4": (
                "Right: `.grad` knows nothing of epochs. The last two batches of the "
                "first are still in it when the second begins, and those of the second "
                "are never used."
            ),
            "4, 4, 2, then 4, 4, 2": (
                "An update for the last two would need a line that notices the end of "
                "the epoch. The condition asks for multiples of four only."
            ),
            "4, 4, then 4, 4: the rest is dropped": (
                "Dropping needs a `zero_grad` at the end of the epoch. There is none: "
                "`i` starts again at 0, and `.grad` does not."
            ),
            "4, 4, 4, 4, 4: the count goes on": (
                "It would if `i` counted on. `i` starts again in every epoch."
            ),
        },
        claims=("C3.2e",),
        core=True,
    ),
    Trap(
        number="3.2.3",
        slug="3.2-mean-of-means",
        symptom=silent(
            lambda error: error > 0.1,
            OFF,
        ),
        question=(
            "How far is the accumulated gradient from that of all 26 images at once, in "
            "lengths of the latter?"
        ),
        choices={
            "about 0.8: it is another gradient": (
                "Right: each batch got a quarter, so an image of the last batch weighs "
                "1/8, where 1/26 is its due."
            ),
            "0: the mean of the means is the mean": (
                "It is where all groups have the same size. The last batch has two "
                "images and the weight of eight."
            ),
            "about 0.05: the last batch is small and hardly counts": (
                "It is small and counts as much as the others: that is the fault."
            ),
            "3: it is four times as long": (
                "It would be 3 for equal batches without the division. By four it was "
                "divided."
            ),
        },
        claims=("C3.2c", "E3.1"),
        core=True,
    ),
    Trap(
        number="3.2.4",
        slug="3.2-batchnorm-differs",
        symptom=silent(
            lambda error: error > 0.1,
            OFF,
        ),
        question=(
            "Four batches of eight, divided by four. How far is the gradient from that of "
            "all 32 at once?"
        ),
        choices={
            "about 0.4": (
                "Right: BatchNorm takes mean and variance from the batch that it sees, "
                "and in eight images they are others than in 32."
            ),
            "0: the batches have equal sizes": (
                "Equal sizes make the weights right. The activations are others "
                "already: they were normalised by eight images at a time."
            ),
            "0: BatchNorm averages over batches": (
                "Its running average is used in `eval` mode only. In training it "
                "normalises by the batch at hand."
            ),
        },
        claims=("C3.2c", "C3.2f"),
    ),
    Trap(
        number="3.2.5",
        slug="3.2-grad-is-none",
        symptom=raises(AttributeError, r"'NoneType' object has no attribute 'norm'"),
        question="The second head is not in the loss. What does `norms()` do?",
        choices={
            "it raises at the second head": (
                "Right: nothing has ever been added to its `.grad`, so that is None."
            ),
            "it lists a norm of 0 for the second head": (
                "A gradient of zeros would be a statement about the loss. None says that "
                "nothing has arrived since it was cleared."
            ),
            "it lists the heads that are in the loss": (
                "`named_parameters` lists all that are registered, used or not."
            ),
        },
        claims=("E3.3",),
    ),
    Trap(
        number="3.2.6",
        slug="3.2-optimizer-before-new-head",
        symptom=silent(
            lambda head: head["gradient"] and not head["moved"],
            "the head after one step",
        ),
        question="What happens to the new head in the first step?",
        choices={
            "it gets a gradient and does not move": (
                "Right: the optimizer holds the parameters that it was given. The new "
                "ones came later."
            ),
            "it gets a gradient and moves": (
                "The optimizer would have to look into the model again. It holds a list "
                "of tensors and knows no model."
            ),
            "it gets no gradient": (
                "Gradients follow the graph, and the new head is in it. The optimizer is "
                "not asked."
            ),
            "`step` raises: one of its parameters has gone": (
                "The old head's tensors are still there, held by the optimizer, and get no "
                "more gradients."
            ),
        },
    ),
]
