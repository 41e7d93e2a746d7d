"""The traps of part 4.2, workers."""

import pickle

from labkit.chapters.ch04.claims_42 import CLAIMS
from labkit.lesson.costs import heavier, slower
from labkit.lesson.symptom import raises, silent
from labkit.lesson.trap import Trap

__all__ = ["CLAIMS", "TRAPS"]

TRAPS: list[Trap] = [
    Trap(
        number="4.2.1",
        slug="4.2-workers-slower-than-none",
        core=True,
        claims=("C4.2a", "C4.2b"),
        symptom=slower(5, count="ms"),
        question=(
            "How long does an epoch over these digits take with two workers, compared "
            "with none?"
        ),
        choices={
            "at least five times as long": (
                "Right: two processes are started, and every batch goes through a queue. "
                "Reading the digits themselves takes a few milliseconds in all."
            ),
            "about half as long: two read at once": (
                "The reading is halved. It was next to nothing, and what the workers "
                "themselves cost was not."
            ),
            "about as long: it is too little data to tell": (
                "It is little data, and therefore the start of two processes is most of "
                "the time."
            ),
            "somewhat longer in the first epoch only": (
                "The workers end with the epoch, and the next one starts others."
            ),
        },
    ),
    Trap(
        number="4.2.2",
        slug="4.2-formula-gives-zero",
        claims=("C4.2a", "C4.2c"),
        symptom=silent(
            lambda readers: readers == ["your process"],
            "the formula leaves all the reading to",
        ),
        question="By the article's formula: who reads the files on this laptop?",
        choices={
            "your own process": (
                "Right: without a GPU the formula gives 0, and 0 workers means that the "
                "training waits for each file itself."
            ),
            "four workers, half the cores": (
                "That is the second half of the formula. The smaller of both counts, and "
                "four times no GPU is 0."
            ),
            "one worker: there has to be one": (
                "There need not be: 0 is the default, and means no worker at all."
            ),
            "nobody: `num_workers=0` is refused": (
                "It is what every loader has by default."
            ),
        },
    ),
    Trap(
        number="4.2.3",
        slug="4.2-private-generator-repeats",
        core=True,
        claims=("E4.1",),
        symptom=silent(
            lambda different: different < 16, "of 16 draws so many are different"
        ),
        question="How many of the 16 noises are different?",
        choices={
            "4": (
                "Right: both workers begin with the same copy of the generator, and so "
                "do the workers of the next epoch."
            ),
            "8: the epochs differ, the two workers do not": (
                "The generator in your process has not moved during the first epoch, so "
                "the second one begins with the same copies."
            ),
            "8: the workers differ, the two epochs do not": (
                "Nobody tells the dataset which worker it is in."
            ),
            "16: torch seeds each worker differently": (
                "It seeds the global generators of torch, NumPy and Python. Of one that a "
                "dataset holds it knows nothing."
            ),
        },
    ),
    Trap(
        number="4.2.4",
        slug="4.2-torch-generator-cannot-travel",
        claims=("C4.2f", "E4.1"),
        # the worker's last words, or where they are lost, what the loader says
        symptom=raises(
            RuntimeError, "unable to resize file|exited unexpectedly|shared"
        ),
        question="What does the worker that is sent the dataset draw with its generator?",
        choices={
            "nothing: it dies while it unpacks the dataset": (
                "Right: a generator can be pickled into a file and back, but on its way "
                "to another process its state is lost."
            ),
            "4 different numbers, those of seed 0": (
                "That is what a forked worker does, and what a NumPy generator does "
                "everywhere."
            ),
            "4 different numbers, of another seed": (
                "Nothing is seeded anew. The worker does not come that far."
            ),
            "nothing: the dataset cannot be pickled, and the loader says so": (
                "It is pickled, and sent. Unpacking it fails, and that is in another "
                "process."
            ),
        },
    ),
    Trap(
        number="4.2.5",
        slug="4.2-cannot-pickle",
        core=True,
        claims=("C4.2f", "C4.2g", "C4.2h"),
        symptom=raises(
            (AttributeError, pickle.PicklingError),
            r"Can't (pickle|get) (local object|<function)|Can't pickle",
        ),
        question="What happens on the colleague's computer?",
        choices={
            "it raises before a worker has started": (
                "Right: what a spawned worker needs is pickled first, and a function "
                "without a name of its own cannot be."
            ),
            "the worker raises at the first item": (
                "The worker is not started: your process fails while it packs the dataset."
            ),
            "it works: functions are objects like any other": (
                "Pickle sends of a function no more than its name, and the worker would "
                "look for `<lambda>` in vain."
            ),
            "it works, with a warning": (
                "There is a warning, in new versions of torch. It comes with the error."
            ),
        },
    ),
    Trap(
        number="4.2.6",
        slug="4.2-iterable-duplicates",
        claims=("E4.3",),
        symptom=silent(
            lambda names: names != 2541, "the file has 2,541 names, and out come"
        ),
        question="The file has 2,541 names. How many come out of the loader?",
        choices={
            "5,082": (
                "Right: each worker has a copy of the stream, and reads all of it."
            ),
            "2,541, in another order": (
                "That is what a list does, whose indices the loader deals out. A stream "
                "has none."
            ),
            "2,541, in the same order": (
                "The loader would have to know which worker may take which line, and a "
                "stream does not tell."
            ),
            "none: a stream has no length, and it raises": (
                "A stream needs no length; the loader goes on until it ends."
            ),
        },
    ),
    Trap(
        number="4.2.7",
        slug="4.2-persistent-stale-attribute",
        claims=("E4.2",),
        symptom=silent(
            lambda seen: seen != [0, 1, 2], "in epochs 0, 1, 2 the items saw"
        ),
        question="Which numbers do the items see in epochs 0, 1 and 2?",
        choices={
            "[0, 0, 0]": (
                "Right: the worker got its copy before the first epoch, and you set the "
                "number on yours."
            ),
            "[0, 1, 2]": (
                "So it is with workers that are started in each epoch, and with none."
            ),
            "[0, 0, 1]: the worker reads ahead": (
                "It does read ahead, but only what it was asked for, and never your copy."
            ),
            "[0, 1, 1]: the start of an epoch brings it up to date": (
                "The start of an epoch sends new indices. It does not send the dataset."
            ),
        },
    ),
    Trap(
        number="4.2.8",
        slug="4.2-copy-on-write",
        claims=("C4.2e",),
        symptom=heavier(5, count="bytes"),
        question=(
            "A worker reads all 300,000 names, and changes none. By how much does the "
            "memory grow that is its own?"
        ),
        choices={
            "by about the size of the list": (
                "Right: to read an object its reference count is written, and each page "
                "that is written to gets copied."
            ),
            "by nothing: reading copies no page": (
                "Python has no reading without writing: each object counts who uses it."
            ),
            "by the size of one name: they are read one by one": (
                "The pages that were copied for the names before stay copied."
            ),
            "by nothing: the copy was made when the worker started": (
                "A fork copies no memory, it shares it. That is why it is fast."
            ),
        },
    ),
]
