"""The traps of part 2.1."""

from labkit.chapters.ch02.claims_21 import CLAIMS
from labkit.lesson.costs import slower
from labkit.lesson.symptom import raises, silent
from labkit.lesson.trap import Trap

__all__ = ["CLAIMS", "TRAPS"]

TRAPS: list[Trap] = [
    Trap(
        number="2.1.1",
        slug="2.1-shared-memory",
        core=True,
        claims=("C2.1a", "C2.1c"),
        symptom=silent(
            lambda targets: targets.tolist() != [1, 2, 3],
            "the targets changed with the array",
        ),
        question="What does `make_targets()` return?",
        choices={
            "`tensor([100, 2, 3])`": "Right: the tensor reads the array's memory, so it "
            "sees every later write.",
            "`tensor([1, 2, 3])`": "That needs a copy, and `from_numpy` makes none: the "
            "tensor reads the array's memory.",
            "nothing: NumPy refuses to write to an array that a tensor uses": "NumPy does "
            "not know of the tensor, and nothing guards the memory.",
        },
    ),
    Trap(
        number="2.1.2",
        slug="2.1-dtype-follows-numpy",
        claims=("C2.1d",),
        symptom=raises(RuntimeError, "same dtype"),
        question="What does `score()` return?",
        choices={
            "nothing: it raises": "Right: the array is float64, the layer float32, and "
            "a matrix product mixes no dtypes.",
            "`torch.float32`, the layer's dtype": "A layer does not convert its input to "
            "the dtype of its weights.",
            "`torch.float64`, the array's dtype": "Elementwise operations promote "
            "dtypes; a matrix product does not.",
        },
    ),
    Trap(
        number="2.1.3",
        slug="2.1-list-of-arrays",
        claims=("C2.1e",),
        symptom=slower(4),
        question="Against `torch.from_numpy(np.stack(arrays))`, how long does "
        "`make_batch()` take?",
        choices={
            "many times as long": "Right: it goes through the list value by value, and "
            "stacking copies whole blocks.",
            "about as long: both copy every value once": "Both copy once, but one value "
            "by value through Python's objects and the other in blocks.",
            "half as long: one step instead of two": "Fewer calls are not less work: "
            "this one visits every value through Python's objects.",
        },
    ),
    Trap(
        number="2.1.4",
        slug="2.1-view-strides",
        core=True,
        claims=("C2.1g", "C2.1h"),
        symptom=raises(RuntimeError, "view size is not compatible"),
        question="What does `flatten()` return?",
        choices={
            "nothing: it raises": "Right: no single step through memory visits the "
            "values in that order.",
            "the columns of `x`, one after the other": "That order needs a copy, and "
            "`view` never makes one.",
            "the values in their old order, 0 to 11": "`view` keeps the order in which "
            "the tensor is indexed, and the transpose has changed that.",
        },
    ),
    Trap(
        number="2.1.5",
        slug="2.1-reshape-maybe-copies",
        claims=("C2.1i",),
        symptom=silent(
            lambda scores: bool((scores == 1).all()), "the write never arrived"
        ),
        question="What is in `scores` after `mask_first()`?",
        choices={
            "ones only": "Right: here `reshape` had to copy, and the write went to the "
            "copy.",
            "one zero, at `[0, 0]`": "It would be, had `reshape` given a view; after a "
            "transpose it copies.",
            "nothing: it raises": "`view` would raise here; `reshape` copies and says "
            "nothing.",
        },
    ),
    Trap(
        number="2.1.6",
        slug="2.1-view-is-not-transpose",
        core=True,
        claims=("C2.1i",),
        symptom=silent(
            lambda x: x.tolist() != [[10, 11, 12], [20, 21, 22]],
            "the shape is right, and each row mixes both sequences",
        ),
        question="What is the first row of `batch_first()`?",
        choices={
            "`[10, 20, 11]`": "Right: `view` deals the values out again in the order in "
            "which they were read before.",
            "`[10, 11, 12]`": "That is the first sequence, and what was wanted; `view` "
            "knows shapes, not what an axis means.",
            "none: it raises": "The sizes fit and the memory can be walked, so `view` "
            "has no reason to raise.",
        },
    ),
    Trap(
        number="2.1.7",
        slug="2.1-expand-write",
        symptom=silent(
            lambda rows: rows.tolist() != [[5, 0, 0], [0, 0, 0]],
            "one write, and every row has it",
        ),
        question="Where is the 5 after `set_one()`?",
        choices={
            "in every row": "Right: both rows are the same three cells of memory.",
            "in the first row": "`expand` gives the second row no memory of its own: its "
            "stride is 0.",
            "nowhere: it raises": "Some in-place operations on a whole expanded tensor "
            "do raise; a write to one element does not.",
        },
    ),
    Trap(
        number="2.1.8",
        slug="2.1-repeated-index-add",
        symptom=silent(
            lambda counts: float(counts.sum()) != 4,
            "four were counted, and not all came",
        ),
        question="What does `count()` return for the classes 0, 0, 0, 2?",
        choices={
            "`tensor([1., 0., 1.])`": "Right: all three read 0, all three write 1.",
            "`tensor([3., 0., 1.])`": "That needs adding up cell by cell; `+=` reads all "
            "the cells first and writes them afterwards.",
            "it depends on the run": "All three writes to cell 0 carry the same value, "
            "so it does not matter which one comes last.",
        },
    ),
]
