"""The traps of part 7.1, what is in a state_dict."""

from labkit.chapters.ch07.claims_71 import CLAIMS
from labkit.lesson.symptom import raises, silent
from labkit.lesson.trap import Trap

__all__ = ["CLAIMS", "TRAPS"]

TRAPS = [
    Trap(
        number="7.1.1",
        slug="7.1-best-model-is-an-alias",
        symptom=silent(
            lambda seen: seen[0] - seen[1] > 0.1,
            "the best accuracy that was seen, and that of the model put back",
        ),
        question=(
            "At its best the model gets 0.7 of the images right, after 80 epochs 0.5. "
            "Which two accuracies does `fit()` return?"
        ),
        choices={
            "0.7 and 0.5": (
                "Right: `kept` is the model's own memory, so putting it back changes "
                "nothing, and the last weights stay."
            ),
            "0.7 and 0.7": (
                "That is what it is written for. It needs a copy of the tensors, and "
                "`state_dict()` makes none."
            ),
            "0.5 and 0.5": (
                "`best` is a number, and nobody overwrites a number. The tensors are "
                "another matter."
            ),
            "0.7 and something between: the head is restored, BatchNorm's statistics are "
            "not": (
                "Running mean and variance are in a `state_dict` like the weights, and are "
                "treated like them."
            ),
        },
        claims=("C7.1a", "E7.1"),
        core=True,
    ),
    Trap(
        number="7.1.2",
        slug="7.1-strict-false-loads-nothing",
        symptom=silent(
            lambda share: share < 0.4,
            "the accuracy of a model that has learned nothing",
        ),
        question=(
            "All names in the checkpoint begin with `module.`, those of the model do not. "
            "What does `load()` do?"
        ),
        choices={
            "it returns 0.1, about as good as guessing, and says nothing": (
                "Right: no name fits, so nothing is loaded, and `strict=False` asked for "
                "silence."
            ),
            "it returns the accuracy of the trained model: a known prefix is taken off": (
                "Names are compared as they are. The prefix belongs to the name."
            ),
            "it returns 0.1, and warns that names are missing": (
                "There is no warning. The names stand in what `load_state_dict` returns, "
                "if somebody looks."
            ),
            "it raises: `strict=False` allows some names to be missing, not all": (
                "There is no lower limit: an empty dictionary loads without an error."
            ),
        },
        claims=("C7.1d",),
        core=True,
    ),
    Trap(
        number="7.1.3",
        slug="7.1-shape-mismatch-half-loads",
        symptom=raises(RuntimeError, r"size mismatch for head\.weight"),
        question=(
            "The checkpoint's head has 10 rows, the model's 2. What does `start()` do?"
        ),
        choices={
            "it raises, and all but the head has been loaded": (
                "Right: another shape is an error whatever `strict` says, and it is raised "
                "when everything else has been copied."
            ),
            "it loads all but the head, and reports the head as missing": (
                "`strict=False` excuses names. The head's names are in both, so they are "
                "neither missing nor unexpected."
            ),
            "it loads all, and of the head the first 2 rows": (
                "A tensor is copied as a whole or not at all."
            ),
            "it raises, and the model is as it was before": (
                "It does raise. Nothing is undone, though: what fits had been copied."
            ),
        },
        claims=("C7.1e",),
    ),
    Trap(
        number="7.1.4",
        slug="7.1-not-in-state-dict",
        symptom=silent(
            lambda seen: seen[1] - seen[2] > 0.3,
            "what was said, the accuracy before, and after the load",
        ),
        question=(
            "The fitted model gets 0.8 of the images right. What is said about the "
            "restored one, and how good is it?"
        ),
        choices={
            "all keys matched, and 0.1": (
                "Right: the centres are a plain attribute, so they are in neither list of "
                "names, and nothing is missing."
            ),
            "all keys matched, and 0.8": (
                "The weights of `embed` arrived. The centres, which decide, did not."
            ),
            "it raises: `centres` is missing in the state": (
                "Missing is what the model has registered and the state lacks. Nobody "
                "registered the centres."
            ),
            "`centres` is unexpected, and 0.1": (
                "It would be if the state had it. A plain tensor is not saved at all."
            ),
        },
        claims=("C7.1b",),
    ),
]
