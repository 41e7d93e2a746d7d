"""The traps of part 5.3."""

import math

from labkit.chapters.ch05.claims_53 import CLAIMS
from labkit.lesson.symptom import silent, warns
from labkit.lesson.trap import Trap

__all__ = ["CLAIMS", "TRAPS"]

TRAPS: list[Trap] = [
    Trap(
        number="5.3.1",
        slug="5.3-rnn-explodes",
        claims=("C5.3c",),
        symptom=silent(lambda loss: not math.isfinite(loss), "the loss is no number"),
        question="What does `read_rows()` return, the mean loss of the last 20 steps?",
        choices={
            "`nan`": "Right: one gradient too large, and each step makes the next one "
            "larger still.",
            "about 2.3: it guesses among ten digits": "That is where a network ends that "
            "learns nothing; this one does not even keep its numbers.",
            "less than 1: it learns": "It can, as the second version shows; the same "
            "learning rate is too much for its first gradients.",
            "nothing: it raises": "Arithmetic on floats does not raise; too large is "
            "Inf, and Inf minus Inf is NaN.",
        },
    ),
    Trap(
        number="5.3.2",
        slug="5.3-clip-in-the-wrong-place",
        claims=("C5.3a",),
        symptom=silent(lambda moved: moved > 1.01, "the step is longer than the limit"),
        question="How far do the weights move, all together?",
        choices={
            "much more than 1": "Right: when the line ran there were no gradients to "
            "shorten, and nobody complained.",
            "`1.0`, the limit": "The line did not leave a limit behind: it shortens the "
            "gradients that are there, once.",
            "`0.0`": "The gradients come after the line, in full, and the step uses them.",
            "they do not: the line raises without gradients": "It would help, but a norm "
            "over no gradients is 0, which is below any limit.",
        },
    ),
    Trap(
        number="5.3.3",
        slug="5.3-fp16-underflow",
        core=True,
        claims=("C5.3f",),
        symptom=silent(
            lambda seen: seen["right"] < 0.5,
            "it ran 60 steps and is no better than before",
        ),
        question="In float32 this loop gets 9 of 10 test digits right. What does "
        "`side_task()` return?",
        choices={
            "no layer has moved": "Right: every gradient became 0 on its way back.",
            "the same as in float32: the weights stay in float32": "They do, and so do "
            "their gradients; what flows from layer to layer is float16.",
            "a little less than in float32, all layers moved": "Three digits are enough; "
            "what is missing here is not digits.",
            "only the last layer has moved": "With ten times the weight the first step "
            "is like that; here the gradient is 0 before it reaches any weight.",
        },
    ),
    Trap(
        number="5.3.4",
        slug="5.3-clip-before-unscale",
        core=True,
        claims=("C5.3b",),
        symptom=silent(lambda loss: loss > 2, "the loss stays where it began"),
        question="In float32, clipped alike, the test loss falls from 2.3 to 0.5. What "
        "does `train_clipped()` return?",
        choices={
            "about 2.3": "Right: the limit was held against gradients that were 65,536 "
            "times too large.",
            "about 0.5": "The scale cancels without clipping; a fixed limit between "
            "scaling and unscaling does not.",
            "about 1: a little slower, since it is clipped more often": "Not a little: on "
            "the true gradients the limit of 1 works like one of 1 ÷ 65,536.",
            "`nan`": "Scaled gradients are large, and clipping makes them small; nothing "
            "overflows.",
        },
    ),
    Trap(
        number="5.3.5",
        slug="5.3-one-nan-spreads",
        claims=("C5.3c",),
        symptom=silent(lambda spoilt: spoilt > 0, "tensors that hold NaN now"),
        question="One of the seven parameters gets a NaN gradient. How many hold NaN "
        "after the step?",
        choices={
            "7": "Right: the norm over all of them is NaN, and each one is multiplied "
            "by the limit over the norm.",
            "1": "It would be, without the line that clips.",
            "0: clipping takes out what is not finite": "It only multiplies; by default "
            "it does not look.",
        },
    ),
    Trap(
        number="5.3.6",
        slug="5.3-bf16-swallows-updates",
        claims=("C5.3h",),
        symptom=silent(lambda moved: moved == 0, "the scale has not moved at all"),
        question="After 100 steps of about 0.001: how far is the LayerNorm's scale, "
        "at most, from the 1 where it began?",
        choices={
            "`0.0`": "Right: next to 1, bfloat16 has 1 − 1/256 and 1 + 1/128, and a "
            "step of 0.001 is rounded away, each time.",
            "about 0.1, as in float32": "Each step would have to be kept; the sum is "
            "rounded after every one.",
            "about 0.1, give or take the rounding": "Rounding errors do not cancel here: "
            "each of the steps is rounded back to the same number.",
        },
    ),
    Trap(
        number="5.3.7",
        slug="5.3-old-amp-api",
        claims=("C5.3e",),
        symptom=warns(FutureWarning, r"torch\.cuda\.amp\.\w+\(args\.\.\.\)` is deprec"),
        question="On a machine without a GPU, what does `old_style()` do?",
        choices={
            "it warns, and computes in float32": "Right: the old names are deprecated "
            "and made for CUDA; without it they switch themselves off.",
            "it computes in float16 on the CPU": "`torch.cuda.amp` is made for CUDA "
            "alone; on a CPU it does nothing.",
            "it raises: there is no GPU": "That would be easier to notice; it warns, "
            "once, and goes on in float32.",
        },
    ),
]
