"""The traps of part 5.2."""

from labkit.chapters.ch05.claims_52 import CLAIMS
from labkit.lesson.symptom import silent, warns
from labkit.lesson.trap import Trap

__all__ = ["CLAIMS", "TRAPS"]

TRAPS: list[Trap] = [
    Trap(
        number="5.2.1",
        slug="5.2-first-step-zero",
        claims=("C5.2d",),
        symptom=silent(
            lambda moved: moved == 0, "after a whole epoch no weight has moved"
        ),
        question="How far have the first layer's weights moved after the first epoch, 13 "
        "optimizer steps?",
        choices={
            "not at all: 0.0": "Right: the function is asked for 0 first, and its answer "
            "holds until the scheduler is stepped, at the end of the epoch.",
            "a fifth of what they would move at the full rate": "That is the second "
            "epoch: the first call gives 0 / 5, and the first epoch runs at that.",
            "about as far as without warm-up": "The warm-up scales the rate of every "
            "step, and here it scales the first 13 by the same factor.",
        },
    ),
    Trap(
        number="5.2.2",
        slug="5.2-epoch-or-step",
        core=True,
        claims=("C5.2e",),
        symptom=silent(
            lambda rate: rate < 0.1,
            "at the end the rate is far below the 0.2 asked for",
        ),
        question="What is the learning rate after the 30 epochs, 390 optimizer steps?",
        choices={
            "`0.006`": "Right: the scheduler was called 30 times, and 30 / 1000 of 0.2 is "
            "0.006.",
            "`0.078`": "That would be 390 / 1000 of 0.2: it takes a call after every "
            "optimizer step.",
            "`0.2`": "The warm-up ends after 1,000 calls of `scheduler.step()`, and this "
            "loop makes 30.",
            "`0.2` from the second epoch on": "A scheduler does not look at the optimizer "
            "or at the data: it counts the calls of its own `step()`.",
        },
    ),
    Trap(
        number="5.2.3",
        slug="5.2-scheduler-first",
        claims=("C5.2g",),
        symptom=warns(
            UserWarning, r"lr_scheduler\.step\(\)` before `optimizer\.step\(\)"
        ),
        question="Which rates do the four optimizer steps use?",
        choices={
            "`0.1`, `0.01`, `0.01`, `0.001`": "Right: the first call of the scheduler "
            "already ends the first rate, before anything was trained with it.",
            "`0.1`, `0.1`, `0.01`, `0.01`": "That is what `step_size=2` asks for; it "
            "takes the scheduler's call after the optimizer's.",
            "`0.1`, `0.1`, `0.1`, `0.01`": "The schedule runs ahead of the optimizer here, "
            "not behind it.",
        },
    ),
    Trap(
        number="5.2.4",
        slug="5.2-plateau-counts-calls",
        claims=("C5.2b", "C5.2c"),
        symptom=silent(
            lambda rate: rate < 1e-4, "the rate is gone, and the loss was still falling"
        ),
        question="`patience=3` and ten epochs in which the loss falls. What is the rate at "
        "the end?",
        choices={
            "`1e-08`": "Right: patience counts calls, not epochs, and four noisy batches "
            "without a new best loss are soon found.",
            "`0.1`: the loss falls from epoch to epoch": "It does, on average; the "
            "scheduler is shown single batches, and a lucky one is hard to beat.",
            "`0.01`: one cut at most in ten epochs": "Ten calls have room for two cuts; "
            "but it is called once a batch, 130 times.",
        },
    ),
    Trap(
        number="5.2.5",
        slug="5.2-plateau-direction",
        claims=("C5.2b",),
        symptom=silent(
            lambda rate: rate < 0.01, "the accuracy rose, and the rate was cut"
        ),
        question="The accuracy on the test digits rises for nine epochs. What is the rate "
        "at the end?",
        choices={
            "`0.0002`": "Right: by default the metric should fall, so that every better "
            "accuracy counts as a bad epoch, and two cuts follow.",
            "`0.02`: nothing has stopped improving": "The scheduler cannot know that a "
            "higher number is better here; by default it takes a lower one.",
            "none: an accuracy is refused": "It takes any number, and NaN too: neither "
            "name nor range is looked at.",
        },
    ),
]
