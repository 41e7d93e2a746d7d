"""The traps of part 7.2, a checkpoint that resumes."""

import pickle

from labkit.chapters.ch07.claims_72 import CLAIMS
from labkit.lesson.symptom import raises, silent, varies
from labkit.lesson.trap import Trap

__all__ = ["CLAIMS", "TRAPS"]

TRAPS: list[Trap] = [
    Trap(
        number="7.2.1",
        slug="7.2-optimizer-forgotten",
        core=True,
        claims=("C7.2a", "C7.2b"),
        symptom=silent(
            lambda times: times > 2, "the loss has jumped, to so many times its value"
        ),
        question=(
            "The weights come from the file. How high does the loss rise in the next ten "
            "steps, as a multiple of the loss at the time of saving?"
        ),
        choices={
            "more than twice as high": (
                "Right: the weights are back, and Adam is not. Its first steps move "
                "nearly every weight that has a gradient by the full learning rate, as at "
                "the beginning of the training."
            ),
            "it stays about the same: the weights are the model": (
                "They are the model, but not the training. The new optimizer knows "
                "nothing of the size of the gradients, and steps far too wide."
            ),
            "it falls: training goes on": (
                "It does in the long run. The first steps of a new Adam are as long as "
                "those of its first day, and the weights are no longer in a place that "
                "bears them."
            ),
            "nothing: a new optimizer and old weights do not fit": (
                "An optimizer without a state is what each training begins with, so "
                "nobody complains."
            ),
        },
    ),
    Trap(
        number="7.2.2",
        slug="7.2-numpy-scalar-refused",
        core=True,
        claims=("C7.2c",),
        symptom=raises(
            pickle.UnpicklingError, r"Unsupported global: GLOBAL numpy[\w.]+"
        ),
        question="What does `keep_best()` do?",
        choices={
            "it raises in `torch.load`": (
                "Right: the mean is an `np.float64`, and to make one the file asks for a "
                "function of NumPy, which the restricted reader does not call."
            ),
            "it raises in `torch.save`": (
                "Saving takes whatever can be pickled. You learn of it when you need the "
                "file."
            ),
            "it returns the mean, 0.267": (
                "It would if the mean were a `float`. It prints like one, and is pickled "
                "as something else."
            ),
            "it returns a tensor with the mean": (
                "Nothing is converted: a value comes back as the type it was, or not at "
                "all."
            ),
        },
    ),
    Trap(
        number="7.2.3",
        slug="7.2-load-before-construct",
        core=True,
        claims=("C7.2e",),
        symptom=silent(
            lambda rates: rates[1] < 0.01, "rates far below those of the unbroken run"
        ),
        question=(
            "The unbroken run has rates of 0.097, 0.0587 and 0.0117 here. What does the "
            "restarted one have?"
        ),
        choices={
            "a hundredth of that, at all three": (
                "Right: when the scheduler was made it wrote the first rate of the warm-up "
                "into the optimizer, and everything after is computed from that."
            ),
            "the same: both states are loaded": (
                "Both are, but between the two something else was written, and the "
                "scheduler's state does not bring the rate back."
            ),
            "a wrong first one, then the same": (
                "That is what some schedulers do, those that compute each rate from the "
                "number of the step. A cosine computes it from the rate before."
            ),
            "the warm-up once more, then the cosine": (
                "The scheduler's counter is loaded, so it is past the warm-up, and goes on "
                "with a cosine, from far too low."
            ),
        },
    ),
    Trap(
        number="7.2.4",
        slug="7.2-rng-forgotten",
        claims=("C7.2d",),
        symptom=varies("the loss after the next epoch"),
        question=(
            "`next_epoch()` is called three times. How do the three losses compare?"
        ),
        choices={
            "three different ones": (
                "Right: the order of the samples is drawn from a state that is in no "
                "`state_dict`."
            ),
            "the same: model and optimizer are complete": (
                "They are. What differs is the order in which they see the samples."
            ),
            "the same: `build()` seeds with 0": (
                "It does, and then a new seed is taken. Had it stayed at 0, the three "
                "would be alike, and wrong: the cell below shows why."
            ),
            "the first differs from the other two": (
                "Each call loads everything anew, so nothing of the one before is left."
            ),
        },
    ),
    Trap(
        number="7.2.5",
        slug="7.2-rng-moved-by-map-location",
        claims=("C7.2d",),
        symptom=raises(
            (TypeError, RuntimeError),
            r"RNG state must be a torch\.ByteTensor|ByteTensor",
        ),
        question="What does `restore()` do?",
        choices={
            "it raises in `set_rng_state`": (
                "Right: the state was moved with everything else, and the generator of "
                "the CPU takes it only from the CPU."
            ),
            "it raises in `torch.load`": (
                "Loading a tensor to another device is what `map_location` is for."
            ),
            "it returns `True`": (
                "With `map_location` the state is no longer on the CPU, and nothing "
                "brings it back by itself."
            ),
            "it returns `False`: the state of another generator is set": (
                "One generator is not set by way of another: the tensor is refused."
            ),
        },
    ),
    Trap(
        number="7.2.6",
        slug="7.2-optimizer-state-by-position",
        claims=("C7.2f",),
        symptom=silent(
            lambda seen: seen["query"] < seen["key"],
            "query had the large gradients, and now",
        ),
        question="What does `tidy()` return, the means that Adam holds for each layer?",
        choices={
            "the two have changed places": (
                "Right: the first state goes to the first parameter, whatever it is "
                "called."
            ),
            "the same as before": (
                "It would if states were found by name. An optimizer was made for a list "
                "of parameters, and goes by their place."
            ),
            "nothing: `load_state_dict` raises": (
                "It compares how many parameters there are, and these are two and two."
            ),
            "zero for both: neither fits": (
                "Both fit, having the same shape; that is what makes it silent."
            ),
        },
    ),
    Trap(
        number="7.2.7",
        slug="7.2-half-written-file",
        claims=("E7.5",),
        symptom=raises(
            (RuntimeError, OSError), "PytorchStreamReader failed|Invalid argument"
        ),
        question="What does `killed()` find when it loads the file?",
        choices={
            "no checkpoint at all: the load raises": (
                "Right: the list of what is in the file stands at its end, and that of "
                "epoch 3 was overwritten first."
            ),
            "epoch 3: the old file stays until the new one is whole": (
                "Only if somebody takes care of it: opening a file to write empties it."
            ),
            "epoch 4, with half of the weights": (
                "A file without its end is not read at all, not even in part."
            ),
            "epoch 3 with some weights of epoch 4": (
                "The old bytes are gone with the first of the new ones."
            ),
        },
    ),
]
