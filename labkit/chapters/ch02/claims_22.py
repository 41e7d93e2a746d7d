"""The claims of part 2.2, broadcasting and in-place, judged by measured values."""

from typing import Any

from labkit.lesson.costs import size
from labkit.lesson.verdict import Claim


def broadcast_bytes(m: dict[str, Any]) -> str:
    return (
        f"`(1000, 1) + (1, 1000)` takes {size(m['forward'])} for a result of "
        f"{size(m['result'])}, so no operand is copied. The backward of a product is "
        f"what takes more: {size(m['backward'])}"
    )


def loop_bytes(m: dict[str, Any]) -> str:
    return (
        f"the peak is {size(m['peak_10'])} after 10 rounds and {size(m['peak_1000'])} "
        "after 1,000: the old result and the new one. What soars is a chain with one "
        f"axis more: {size(m['pairwise'])} for a result of {size(m['small'])}"
    )


def matmul_bytes(m: dict[str, Any]) -> str:
    r = m["result"]
    return (
        f"`matmul` with both operands stretched takes {m['matmul'] / r:.3g} × its "
        f"result, `einsum` takes {m['einsum'] / r:.3g} ×, and `matmul` with a 2-D "
        f"operand {m['flat'] / r:.3g} ×"
    )


def inplace_bytes(m: dict[str, Any]) -> str:
    return (
        f"the backward of 8 × (Linear, ReLU) keeps {size(m['plain'])} without and "
        f"{size(m['inplace'])} with `inplace=True`; only the peak of the forward is "
        f"lower, by {size(m['freed'])}, one tensor"
    )


CLAIMS = [
    Claim(
        "C2.2a",
        "holds",
        "Broadcasting follows NumPy's rules.",
        "on {tried} pairs of shapes torch and NumPy gave the same shape or both refused; "
        "in place, torch refuses a result that would have to grow",
        agrees=lambda m: m["same"] and m["refused"] and m["tried"] >= 6,
    ),
    Claim(
        "C2.2b",
        "wrong",
        "Broadcast operands are expanded in memory; adding `(1000, 1)` and `(1, 1000)` "
        "makes temporaries.",
        broadcast_bytes,
        agrees=lambda m: (
            m["forward"] == m["result"] and m["backward"] >= 2 * m["result"]
        ),
    ),
    Claim(
        "C2.2c",
        "wrong",
        "In a loop, such additions make memory soar.",
        loop_bytes,
        agrees=lambda m: (
            m["peak_1000"] == m["peak_10"] <= 2 * m["result"]
            and m["pairwise"] > 100 * m["small"]
        ),
    ),
    Claim(
        "C2.2d",
        "incomplete",
        "(Left unsaid: the operation whose broadcasting does copy.)",
        matmul_bytes,
        agrees=lambda m: (
            m["matmul"] >= 2.9 * m["result"]
            and m["einsum"] <= 1.1 * m["result"]
            and m["flat"] == m["result"]
        ),
        source="https://github.com/pytorch/pytorch/issues/154128",
    ),
    Claim(
        "C2.2e",
        "conditions",
        "In-place operations save memory.",
        inplace_bytes,
        agrees=lambda m: m["plain"] == m["inplace"] > m["freed"] > 0,
    ),
    Claim(
        "C2.2f",
        "holds",
        "Editing a value that the backward needs breaks the gradient.",
        "of {tried} operations whose result was edited, {raised} raised: exactly those "
        "that had saved their result",
        agrees=lambda m: m["exactly"] and 0 < m["raised"] < m["tried"],
    ),
    Claim(
        "C2.2g",
        "conditions",
        "PyTorch usually detects it.",
        "an edit through {caught} was caught; through {silent} it gave a wrong gradient "
        "without a word; and `z + relu_(z)` of [-1, 2] is {residual}, another function "
        "than was meant",
        agrees=lambda m: (
            "detach" in m["caught"]
            and ".data" in m["silent"]
            and m["residual"] == [0, 4]
        ),
    ),
    Claim(
        "C2.2h",
        "holds",
        "Some in-place edits are hard to notice.",
        "a callee's `z += 1` turned the caller's [-1, 2] into {callee}, a module with "
        "`inplace=True` into {module}; edits of a leaf and of a `chunk` are refused at "
        "once",
        agrees=lambda m: (
            m["callee"] == [0, 3] and m["module"] == [0, 2] and m["refused"]
        ),
    ),
    Claim(
        "C2.2i",
        "incomplete",
        "Rule of thumb: no in-place operation in `forward`, unless the value needs no "
        "gradient.",
        "stricter than needed: {right} of {tried} recorded edits gave the gradient of the "
        "same function without edits. What counts is whether the old value was saved",
        agrees=lambda m: m["right"] == m["tried"] >= 3,
    ),
    Claim(
        "C2.2j",
        "wrong",
        "Inside `torch.no_grad()` in-place operations can be used without worry.",
        "the loss was {loss:g} · w and its gradient came out as {gradient:g}; recorded, "
        "the same edit gives {recorded:g}",
        agrees=lambda m: m["gradient"] == 3 and m["recorded"] == m["loss"] == 30,
    ),
]
