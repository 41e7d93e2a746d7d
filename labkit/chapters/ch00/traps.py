"""The one trap of chapter 00, on which a learner sees how a page works."""

from labkit.lesson.symptom import silent
from labkit.lesson.trap import Trap
from labkit.lesson.verdict import Claim

TRAPS: list[Trap] = [
    Trap(
        "0.1.1",
        "0-first",
        silent(lambda ink: ink[-1] == 0, "full ink became paper"),
        "Three points hold 4, 8 and 16. What does `stretch()` make of them?",
        {
            "64, 128 and 0": "Right: a `uint8` holds 0 to 255, and after 255 comes 0.",
            "64, 128 and 255": "Image programs often stop at the largest value. PyTorch "
            "starts again at 0.",
            "64, 128 and 256": "256 does not fit into a `uint8`, and multiplying by a "
            "whole number keeps the tensor's dtype.",
            "nothing: it raises": "Whole numbers that grow too large are not reported.",
        },
        core=True,
    )
]
CLAIMS: list[Claim] = []
