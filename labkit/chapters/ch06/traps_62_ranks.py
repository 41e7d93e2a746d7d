"""The traps of part 6.2 that are about what ranks send to each other."""

from labkit.lesson.costs import slower
from labkit.lesson.symptom import raises, silent
from labkit.lesson.trap import Trap

RANK_TRAPS = [
    Trap(
        number="6.2.4",
        slug="6.2-unequal-batches",
        symptom=silent(
            lambda off: off > 0.05,
            "how far the gradient is from the wanted one",
        ),
        question=(
            "DDP averages the gradients of both ranks. Which loss gives the gradient of "
            "the mean over all eight samples?"
        ),
        choices={
            "only `own_part`": (
                "Right: DDP divides by ranks and not by samples, so each rank must hand in "
                "its part of the mean over all."
            ),
            "`own_mean` and `own_part`: a mean of means is the mean": (
                "Only where all parts are equally large. Here six samples weigh as much as "
                "two."
            ),
            "only `own_sum`: DDP adds the sums of both ranks": (
                "DDP does add, and then divides by the number of ranks. Nothing divides by "
                "the eight samples."
            ),
            "none: a rank knows only its own samples": (
                "A rank can ask: one `all_reduce` of its number of samples, and it knows "
                "the total."
            ),
        },
        claims=("C6.2f", "E6.3"),
        core=True,
    ),
    Trap(
        number="6.2.5",
        slug="6.2-unused-parameter",
        symptom=raises(
            RuntimeError, r"Expected to have finished reduction in the prior iteration"
        ),
        question="`parity` takes no part in any of the three steps. What happens?",
        choices={
            "it raises in the second step": (
                "Right: DDP waits for the gradients of `parity`, and notices at the next "
                "forward that they have not come."
            ),
            "it raises in the first step": (
                "In the first step DDP cannot know yet that a gradient will not come: the "
                "backward might still be going on."
            ),
            "it makes three steps; `parity` gets no gradient": (
                "That is what a model without DDP does. DDP expects a gradient from each "
                "parameter in each step."
            ),
            "it makes three steps; `parity` gets a gradient of zeros": (
                "Nobody fills in zeros. What is not in the graph gets no gradient at all."
            ),
        },
        claims=("C6.2f",),
    ),
    Trap(
        number="6.2.6",
        slug="6.2-uneven-inputs",
        symptom=raises(
            RuntimeError, r"timed out|timeout|connection closed|connection reset"
        ),
        question=(
            "Two epochs, with four batches on rank 0 and three on rank 1. How does it go?"
        ),
        choices={
            "both make six steps, then rank 0 waits until the timeout": (
                "Right: a message is matched with the next one, whatever it was meant for. "
                "The ranks drift by one batch, and it shows when rank 1 has none left."
            ),
            "rank 0 waits until the timeout in the last step of the first epoch": (
                "Rank 1 is back before that: its first batch of the second epoch sends the "
                "message that rank 0 waits for."
            ),
            "rank 0 makes its last step of each epoch alone": (
                "No rank knows how many batches another one has. It waits for the other's "
                "gradient in every step."
            ),
            "DDP raises at once, since the loaders differ in length": (
                "DDP never sees a loader. It sees one forward after the other."
            ),
        },
        claims=("C6.2f", "E6.1"),
        core=True,
    ),
    Trap(
        number="6.2.7",
        slug="6.2-wrapper-bypassed",
        symptom=silent(
            lambda messages: messages == 0,
            "messages with gradients in one step",
        ),
        question="How many messages with gradients does the step with the method send?",
        choices={
            "none": (
                "Right: the sending is prepared in the forward of the wrapper, and nobody "
                "called that."
            ),
            "one: the hooks are on the parameters, which are the same": (
                "They are, and they fire. But DDP ignores them in a backward that its "
                "forward has not prepared."
            ),
            "two, one for each parameter": (
                "Gradients travel in buckets of many parameters, so it would be one. And "
                "that one is missing."
            ),
            "it raises: gradients of a model that is wrapped need the wrapper": (
                "The model inside is an ordinary module and works without the wrapper, "
                "which is the trouble."
            ),
        },
        claims=("C6.2f",),
    ),
    Trap(
        number="6.2.8",
        slug="6.2-accumulate-without-no-sync",
        symptom=slower(2, count="messages"),
        question="Four backwards, then one update. How many messages with gradients?",
        choices={
            "four": (
                "Right: every backward sends, since DDP does not know which is the last "
                "before the update."
            ),
            "one, at the last backward": (
                "That is what is needed, and has to be said: the first three under "
                "`no_sync`."
            ),
            "one, in `optimizer.step()`": (
                "The optimizer knows nothing of ranks. Gradients travel during the "
                "backward."
            ),
            "eight: weight and bias, four times": (
                "Both go in one bucket. DDP collects gradients up to 25 MB in a message."
            ),
        },
        claims=("C6.2f", "E6.3"),
    ),
]
