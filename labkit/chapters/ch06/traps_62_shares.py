"""The traps of part 6.2 that are about which rank sees which sample."""

from labkit.lesson.symptom import silent
from labkit.lesson.trap import Trap

SHARE_TRAPS = [
    Trap(
        number="6.2.1",
        slug="6.2-no-set-epoch",
        symptom=silent(
            lambda lists: all(one == lists[0] for one in lists),
            "what rank 0 gets in three epochs",
        ),
        question="What does rank 0 get in the three epochs?",
        choices={
            "the same six samples in the same order, three times": (
                "Right: the permutation comes from seed and epoch, and nobody tells the "
                "sampler that there is another epoch."
            ),
            "the same six samples, each time in another order": (
                "Half of it: the share stays the same. So does its order, since share and "
                "order come from one permutation."
            ),
            "three different orders of all twelve samples": (
                "Each rank gets half of an epoch; all twelve is what both get together."
            ),
            "each time six samples drawn anew": (
                "That is what `shuffle` promises, and what you get once somebody calls "
                "`set_epoch`."
            ),
        },
        claims=("C6.2c", "E6.2"),
        core=True,
    ),
    Trap(
        number="6.2.2",
        slug="6.2-sampler-seed-per-rank",
        symptom=silent(
            lambda seen: seen["never"] > 0,
            "how many of 12 samples an epoch has never, once, twice",
        ),
        question="Each rank's sampler has a seed of its own. What is in one epoch?",
        choices={
            "some samples twice, some never": (
                "Right: each rank cuts its half out of another permutation, and the halves "
                "overlap."
            ),
            "all twelve, each once": (
                "The ranks do not talk to each other. They fit together only where they "
                "compute the same permutation."
            ),
            "all twelve, each twice": (
                "Each rank still takes six. That makes twelve in all, not twenty-four."
            ),
            "nothing: the second sampler raises, since the seeds differ": (
                "No sampler knows of another one, so none can notice."
            ),
        },
        claims=("C6.2c",),
    ),
    Trap(
        number="6.2.3",
        slug="6.2-padded-metric",
        symptom=silent(
            lambda share: abs(share - 6 / 9) > 0.01,
            "the accuracy, where 6 of 9 are right",
        ),
        question=(
            "Six of nine samples are right, which is 0.667. What does `accuracy()` return "
            "from four ranks?"
        ),
        choices={
            "0.5": (
                "Right: the sampler fills the shares up to twelve samples, and takes the "
                "first three, which are wrong, a second time."
            ),
            "0.667": (
                "With counts that are added up that would be right, if every sample were "
                "counted once. The sampler makes all shares equally long."
            ),
            "0.75": (
                "So it would be if samples that are right had been counted twice. The "
                "sampler repeats from the beginning."
            ),
            "0.625": (
                "That is 5 of 8: what comes out if the ninth sample is dropped, with "
                "`drop_last=True`. The default repeats."
            ),
        },
        claims=("C6.2c",),
        core=True,
    ),
]
