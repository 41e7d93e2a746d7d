"""The traps of part 5.1."""

from labkit.chapters.ch05.claims_51 import CLAIMS
from labkit.lesson.symptom import raises, silent, varies
from labkit.lesson.trap import Trap

__all__ = ["CLAIMS", "TRAPS"]

CHANCE = 0.1  # ten digits, about equally often
ALL_BUT_ONE_OF_TEN = 1.46  # -log(e / (e + 9)): the best that ten probabilities can do

TRAPS: list[Trap] = [
    Trap(
        number="5.1.1",
        slug="5.1-forgot-eval",
        core=True,
        claims=("C5.1b", "C5.1d"),
        symptom=varies("the same model on the same batches", repeats=3),
        question="`validate()` runs three times. Which losses does it return?",
        choices={
            "three different ones": "Right: the model is still in train mode, and "
            "Dropout draws anew in each forward.",
            "three times the same": "That is what eval mode would give. `no_grad` only "
            "stops the recording of gradients.",
            "each one lower than the last": "Learning needs a backward and a step; a "
            "forward alone changes no parameter.",
        },
    ),
    Trap(
        number="5.1.2",
        slug="5.1-bn-updated-in-validation",
        core=True,
        claims=("C5.1c", "C5.1e"),
        symptom=silent(
            lambda right: right["after"] < right["before"] - 0.05,
            "looking at other images has changed the model",
        ),
        question="What share of the old scanner's test images is read rightly, before "
        "and after the look?",
        choices={
            "0.9 before, clearly less after": "Right: the look has replaced most of "
            "BatchNorm's statistics by those of grey images.",
            "0.9 before, 0.9 after": "No parameter has changed. But a model is more than "
            "its parameters: BatchNorm collects in every forward in train mode.",
            "0.9 before, a little more after": "The model has seen more images, but "
            "without labels or gradients it learns nothing from them.",
        },
    ),
    Trap(
        number="5.1.3",
        slug="5.1-functional-dropout",
        claims=("C5.1b", "E5.3"),
        symptom=silent(lambda same: same is False, "in eval mode, two other answers"),
        question="Are the two answers the same? What does `same_twice()` return?",
        choices={
            "`False`": "Right: the function does not know the module's mode, and its own "
            "default is to train.",
            "`True`, since the model is in eval mode": "`eval` sets a flag on the "
            "module; nobody hands it to the function.",
            "nothing: it raises": "A function that is not told the mode goes by its "
            "default, `training=True`.",
        },
    ),
    Trap(
        number="5.1.4",
        slug="5.1-train-thaws-frozen-bn",
        claims=("C5.1a", "C5.1g", "E5.2"),
        symptom=silent(lambda same: same is False, "the frozen part has moved"),
        question="Does the frozen part still give the same features? What does "
        "`fine_tune()` return?",
        choices={
            "`False`": "Right: `model.train()` puts the frozen BatchNorm back into train "
            "mode, and it collects grey statistics.",
            "`True`: none of its parameters may change": "None has. Its running "
            "statistics are no parameters, and `requires_grad` says nothing about them.",
            "`True`: it was put into eval mode": "It was, until `model.train()` reached "
            "every module of the model.",
        },
    ),
    Trap(
        number="5.1.5",
        slug="5.1-batch-of-one",
        claims=("C5.1c",),
        symptom=raises(ValueError, "Expected more than 1 value per channel"),
        question="What does `epoch_of_27()` return?",
        choices={
            "nothing: it raises": "Right: the last batch holds one image, and BatchNorm "
            "needs two values to have a spread.",
            "`1000`": "All but the last batch go through; that one holds a single image.",
            "`999`": "A loader drops the incomplete batch only when told to; here it "
            "comes, and holds a single image.",
        },
    ),
    Trap(
        number="5.1.6",
        slug="5.1-eval-never-left",
        core=True,
        claims=("C5.1g",),
        symptom=silent(
            lambda right: right < 0.3, "five epochs, and no better than guessing"
        ),
        question="What does `run()` return?",
        choices={
            f"`{CHANCE}`, as good as guessing": "Right: from the first evaluation on it "
            "trains in eval mode, and BatchNorm normalises nothing.",
            "`0.9`": "So it would be in train mode. The first evaluation ends that, and "
            "nobody calls `train()` again.",
            "nothing: `backward` raises in eval mode": "The mode does not touch "
            "gradients: a model in eval mode can be trained, for better or worse.",
        },
    ),
    Trap(
        number="5.1.7",
        slug="5.1-softmax-before-cross-entropy",
        symptom=silent(
            lambda fit: fit["loss"] > ALL_BUT_ONE_OF_TEN - 0.1,
            "the loss stays high, whatever the model learns",
        ),
        question="How far does the loss fall, from 2.3 at the start?",
        choices={
            "to about 1.5, and it stays there": "Right: the loss takes a softmax of the "
            "probabilities, which can never be sure.",
            "near 0, and most digits are read rightly": "That needs logits without "
            "bounds; probabilities end at 1.",
            "not at all: softmax twice has no gradient": "It has one, only smaller, and "
            "the model does learn.",
        },
    ),
]
