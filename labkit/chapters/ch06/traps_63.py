"""The traps of part 6.3, what each rank keeps to itself."""

from labkit.chapters.ch06.claims_63 import CLAIMS
from labkit.chapters.ch06.stuck import Stuck
from labkit.lesson.symptom import raises, silent
from labkit.lesson.trap import Trap

__all__ = ["CLAIMS", "TRAPS"]


def apart(values: list[float]) -> bool:
    return values[0] - values[1] > 0.3


TRAPS = [
    Trap(
        number="6.3.1",
        slug="6.3-bn-per-rank",
        core=True,
        claims=("C6.3a",),
        symptom=silent(
            apart, "share of the images of each clinic that are read rightly"
        ),
        question=(
            "Which shares does the model that rank 0 saves read rightly, of the first "
            "clinic's images and of the second's?"
        ),
        choices={
            "0.9 and 0.3": (
                "Right: the weights know both clinics, but the mean and variance that "
                "BatchNorm uses in evaluation are those of rank 0's images."
            ),
            "0.9 and 0.9": (
                "The weights could do it. In evaluation BatchNorm replaces the batch's own "
                "statistics by kept ones, and these are not averaged over the ranks."
            ),
            "0.6 and 0.6": (
                "Nothing makes a compromise: rank 0's statistics are taken as they are, "
                "so its own images are read well."
            ),
            "0.3 and 0.9": (
                "What is kept is copied from rank 0 to the others, never the other way "
                "round."
            ),
        },
    ),
    Trap(
        number="6.3.2",
        slug="6.3-syncbn-needs-gpu",
        claims=("C6.3b",),
        symptom=raises(
            ValueError,
            "SyncBatchNorm layers only work with GPU|SyncBatchNorm expected input tensor",
        ),
        question="What does `wrap()` do with a model on the CPU?",
        choices={
            "it raises when DDP wraps the model": (
                "Right: the layers exchange their statistics between GPUs only, and DDP "
                "looks whether the model is on one."
            ),
            "it raises when the layers are converted": (
                "Conversion puts one module in the place of another, and asks for nothing."
            ),
            "it works: in a group of one there is nothing to exchange": (
                "There is not, but DDP refuses such a layer on a CPU whatever the size of "
                "the group."
            ),
            "it works, with the statistics of this rank": (
                "Not in a group: there it raises. (Without any process group it does just "
                "that, silently.)"
            ),
        },
    ),
    Trap(
        number="6.3.3",
        slug="6.3-same-augmentation",
        claims=("C6.3c",),
        symptom=silent(
            lambda draws: draws[0] == draws[1], "rank 0 and rank 1 draw the same"
        ),
        question="Rank 0 and rank 1 have different images. What about the amounts?",
        choices={
            "the same three numbers on both": (
                "Right: both begin from one seed and draw three times. Which image the "
                "number is for does not matter to the generator."
            ),
            "six different numbers: the sampler deals them out": (
                "It deals out the images. The numbers are drawn where the image is made, "
                "by a generator that each rank has for itself and seeds alike."
            ),
            "six different numbers: each process has a generator of its own": (
                "It has, and all of them were given the same seed."
            ),
            "other numbers in each run": (
                "The seed makes them the same in each run, and on each rank as well."
            ),
        },
    ),
    Trap(
        number="6.3.4",
        slug="6.3-weights-changed-after-wrap",
        claims=("C6.3d",),
        symptom=silent(
            lambda weights: weights[0] != weights[1], "the weights of rank 0 and rank 1"
        ),
        question="What do the two ranks return?",
        choices={
            "two different weights": (
                "Right: DDP had copied the weights before they were changed, and it never "
                "compares them again."
            ),
            "the same weight, on the way from 3": (
                "It would if DDP copied weights in each step. It does so once, when it "
                "wraps, and what was copied then is what rank 1 still has."
            ),
            "the same weight: gradients are averaged": (
                "They are, so both ranks make the same step. From different places."
            ),
            "nothing: rank 1 waits for the weights": (
                "Nobody sends any: `load` writes into the memory of rank 0, and DDP does "
                "not know of it."
            ),
        },
    ),
    Trap(
        number="6.3.5",
        slug="6.3-module-prefix",
        core=True,
        claims=("C6.3e",),
        symptom=silent(
            lambda share: share < 0.5, "the trained model reads 0.9, the loaded one"
        ),
        question="The trained model reads 0.9. What does `evaluate()` return?",
        choices={
            "0.1": (
                "Right: each name in the file begins with the name that DDP holds the "
                "model under, none fits, and `strict=False` accepts that."
            ),
            "0.9": (
                "The weights are all in the file, and the resuming script finds them. "
                "Under these names a plain model does not."
            ),
            "nothing: `load_state_dict` raises": (
                "It does when it is strict; that the script asked for the opposite was "
                "for another reason."
            ),
            "0.9 on rank 0, and 0.1 elsewhere": (
                "All ranks have the same weights, and there is only one process here."
            ),
        },
    ),
    Trap(
        number="6.3.6",
        slug="6.3-rank-local-loss",
        claims=("C6.3f",),
        symptom=silent(
            lambda loss: abs(loss - 1.5) > 0.1, "the mean is 1.5, and the log says"
        ),
        question="What does the log say?",
        choices={
            "1.0, the loss of rank 0": (
                "Right: DDP averages gradients. A loss is an ordinary tensor of its rank."
            ),
            "1.5, the mean: DDP averages": (
                "It averages gradients, in the backward. The loss exists before that, and "
                "is not sent anywhere."
            ),
            "3.0, the sum over the ranks": (
                "A sum would be what `all_reduce` gives, if somebody called it."
            ),
            "1.0 and 2.0, one line from each rank": (
                "The guard lets only rank 0 write, so the 2.0 of rank 1 is nowhere."
            ),
        },
    ),
    Trap(
        number="6.3.7",
        slug="6.3-collective-inside-rank-zero",
        core=True,
        claims=("C6.3f",),
        symptom=Stuck(),
        question="What happens in this script?",
        choices={
            "both ranks wait and never end": (
                "Right: rank 0 is in `all_reduce` and needs rank 1, rank 1 is in `barrier` "
                "and needs rank 0."
            ),
            "rank 0 logs 1.5: it asks rank 1 for its loss": (
                "Nobody is asked. A collective is a call that all ranks make; whoever does "
                "not call it gives nothing."
            ),
            "rank 0 logs 0.5: the others count as 0": (
                "Here, with gloo, there is no value for a rank that did not come. It is "
                "waited for."
            ),
            "an error: the ranks call different collectives": (
                "That would be a help. By default nobody compares what the ranks call."
            ),
        },
    ),
    Trap(
        number="6.3.8",
        slug="6.3-everyone-saves",
        claims=("C6.3f",),
        symptom=raises(
            (RuntimeError, OSError), "PytorchStreamReader failed|Invalid argument"
        ),
        question="What does rank 0 find when it loads what it has saved?",
        choices={
            "no checkpoint: the load raises": (
                "Right: rank 1 opened the same path for writing, which emptied it, and "
                "has written only the first piece."
            ),
            "its own checkpoint: it was written to the end": (
                "It was. Then another rank opened the file to write, and what stood there "
                "was gone."
            ),
            "a mixture of both ranks' weights": (
                "Not in this order: rank 1 opens the file after rank 0 has finished, which "
                "empties it. Ranks that write at the same moment can leave a mixture."
            ),
            "the error comes earlier: rank 1 cannot open the file": (
                "Linux and macOS let as many processes write to a file as want to."
            ),
        },
        simulated=True,  # the two ranks are played by two open files of one process
    ),
]
