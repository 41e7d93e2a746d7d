"""The traps of part 4.3, samples of unequal length."""

from labkit.chapters.ch04.claims_43 import CLAIMS
from labkit.lesson.symptom import raises, silent
from labkit.lesson.trap import Trap

__all__ = ["CLAIMS", "TRAPS"]

TRAPS = [
    Trap(
        number="4.3.1",
        slug="4.3-float-token-ids",
        symptom=raises(
            RuntimeError,
            r"argument #1 'indices' to have one of the following scalar types: Long, Int",
        ),
        question=(
            "`first_collate` fills a rectangle of zeros with the numbers, and the "
            "embedding has a vector for each number. What does `first_batch()` do?"
        ),
        choices={
            "it raises in the embedding: the numbers are floats by then": (
                "Right: the rectangle is float32, and what is written into it becomes "
                "float32. An embedding takes integers only."
            ),
            "it raises in `first_collate`: a tensor of floats takes no integers": (
                "It takes them. An assignment converts to the dtype of the tensor on the "
                "left, and says nothing."
            ),
            "it raises in the loader: names of unequal length cannot be put together": (
                "That is what the default collate does. This one was written so that they "
                "can."
            ),
            "it returns a shape: four names, the longest one's letters, 8": (
                "The shapes do fit. It is the dtype of the numbers that does not."
            ),
        },
        claims=("C4.3c",),
        core=True,
    ),
    Trap(
        number="4.3.2",
        slug="4.3-pad-leaks",
        symptom=silent(
            lambda share: share > 0.1,
            "the share of names whose language depends on the batch they were read in",
        ),
        question=(
            "The same trained model reads the same 541 names twice: one at a time, and in "
            "batches of 64. How many of them get another language?"
        ),
        choices={
            "about four in ten": (
                "Right: the mean counts the pads, and how many there are depends on the "
                "longest name of the batch."
            ),
            "none: the weights are the same, and nothing in the model is random": (
                "The inputs are not the same. A short name beside a long one is a short "
                "name with many pads."
            ),
            "one or two, where two languages are as good as equal: sums are rounded": (
                "Rounding is in the seventh digit. The pads of a short name outnumber its "
                "letters."
            ),
            "nearly all: in most batches there are more pads than letters": (
                "There are. But the model was trained with pads as well, and has learned "
                "to live with some."
            ),
        },
        claims=("C4.3e",),
        core=True,
    ),
    Trap(
        number="4.3.3",
        slug="4.3-fully-masked-row",
        symptom=silent(
            lambda seen: seen["with NaN"] > 0,
            "the loss, and how many of the gradients have a NaN",
        ),
        question=(
            "One of the sixteen names is empty: all its places are masked, and its output "
            "is left out of the loss. What comes out?"
        ),
        choices={
            "a loss, and NaN in the gradients of nearly all weights": (
                "Right: the empty row's output is NaN, and 0 times NaN is NaN on the way "
                "back, although its gradient is 0."
            ),
            "a loss and gradients: what is left out of the loss gets no gradient": (
                "It gets a gradient of 0. Times NaN, that is NaN, in weights that all rows "
                "share."
            ),
            "NaN for the loss, and so for all gradients": (
                "That would at least be seen. The empty name's output is NaN, but it is "
                "left out."
            ),
            "an error: a row must have at least one place to look at": (
                "Nothing looks for that. The softmax over no places at all is 0 ÷ 0, and "
                "goes on."
            ),
        },
        claims=("C4.3f",),
    ),
    Trap(
        number="4.3.4",
        slug="4.3-mask-polarity",
        symptom=silent(
            lambda seen: seen["pads"] > 0 or seen["letters"] == 0,
            "how many letters and pads the result for one name depends on",
        ),
        question=(
            "`pads` is True where a pad stands. “Suède” has 5 letters, and 15 pads behind "
            "it. Which of the places does its result depend on?"
        ),
        choices={
            "on the 15 pads, and on no letter": (
                "Right: in this function True means that a place takes part, the opposite "
                "of what it means in the module."
            ),
            "on the 5 letters, as before": (
                "That was the module's rule: True is ignored. The function reads the same "
                "mask the other way round."
            ),
            "on all 20: a boolean mask is added to the scores, and adds 0 or 1": (
                "Float masks are added. A boolean one selects."
            ),
            "on none: it raises, since the shape of the mask does not fit": (
                "`pads[:, None]` fits: for each name one row, for all of its queries."
            ),
        },
        claims=("C4.3f",),
    ),
]
