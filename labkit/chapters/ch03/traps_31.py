"""The traps of part 3.1, the graph."""

from labkit.chapters.ch03.claims_31 import CLAIMS
from labkit.lesson.costs import heavier
from labkit.lesson.symptom import raises
from labkit.lesson.trap import Trap

__all__ = ["CLAIMS", "TRAPS"]

TRAPS = [
    Trap(
        number="3.1.1",
        slug="3.1-graph-kept-alive",
        symptom=heavier(8),
        question=(
            "The tensors of one batch take 0.13 MB at their peak. What do those of "
            "`validate()` take, over 30 batches?"
        ),
        choices={
            "about 2 MB: every batch is still there": (
                "Right: the sum is recorded too, so it holds every loss, every loss its "
                "graph, and every graph what it saved."
            ),
            "about 0.2 MB: a batch is freed when the next one has replaced it": (
                "It would be if nothing referred to its graph. `total` does, through the "
                "additions."
            ),
            "about 0.13 MB: nobody called `backward`, so nothing is kept": (
                "The forward saves, whether a `backward` follows or not. What it saved "
                "lives as long as somebody holds the graph, and `total` does."
            ),
            "about 0.3 MB: the sum keeps its last two terms": (
                "`total` is added to 30 times, and each addition leads to the one before "
                "it."
            ),
        },
        claims=("C3.1c", "E3.2"),
    ),
    Trap(
        number="3.1.2",
        slug="3.1-backward-twice",
        symptom=raises(RuntimeError, r"backward through the graph a second time"),
        question="The streams have 40 chunks. What does `read()` do?",
        choices={
            "it raises in the second chunk": (
                "Right: the second loss leads through the state into the first chunk's "
                "graph, and that was used up."
            ),
            "it raises in the first chunk: there is no state yet": (
                "`None` is what a recurrent layer takes for a state of zeros."
            ),
            "it returns the last loss: `zero_grad` separates the chunks": (
                "`zero_grad` clears the gradients of the weights. The graph hangs on the "
                "state, and nothing cuts it there."
            ),
            "it returns the last loss, and each chunk takes longer than the last": (
                "The graphs would have to be kept for that, and `backward` frees what its "
                "nodes saved. Even kept they would not do: see what `step` does to them."
            ),
        },
        core=True,
    ),
]
