"""The claims of part 2.2, broadcasting and in-place, judged by measured values."""

from typing import Any

from labkit.lesson.costs import size
from labkit.lesson.verdict import Claim


def broadcast_bytes(m: dict[str, Any]) -> str:
    return (
        f"`(1000, 1) + (1, 1000)` takes {size(m['forward'])} for a result of "
        f"{size(m['result'])}: no operand is copied. The copies come in the "
        f"backward of a product: {size(m['backward'])}"
    )


def loop_bytes(m: dict[str, Any]) -> str:
    return (
        f"peak after 10 rounds {size(m['peak_10'])}, after 1,000 "
        f"{size(m['peak_1000'])}: the old result and the new one. What explodes is "
        f"a chain with one axis more: {size(m['pairwise'])} for a result of "
        f"{size(m['small'])}"
    )


def matmul_bytes(m: dict[str, Any]) -> str:
    r = m["result"]
    return (
        f"`matmul` with both operands stretched takes {m['matmul'] / r:.3g} times its "
        f"result, `einsum` {m['einsum'] / r:.3g} times, a 2-D operand "
        f"{m['flat'] / r:.3g} times"
    )


def inplace_bytes(m: dict[str, Any]) -> str:
    return (
        f"saved for the backward of 8 × (Linear, ReLU): {size(m['plain'])} without "
        f"and {size(m['inplace'])} with `inplace=True`; at the peak {size(m['freed'])} "
        "less, one tensor"
    )


CLAIMS = [
    Claim(
        "C2.2a",
        "holds",
        "Broadcasting follows NumPy's rules.",
        "on {tried} pairs of shapes torch and NumPy gave the same or both refused; in "
        "place, a result that would have to grow is refused",
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
        "caught: {caught}; silent and wrong: {silent}; silently another function: "
        "`z + relu_(z)` of [-1, 2] is {residual}",
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
        "[-1, 2] was {callee} after a callee's `z += 1`, and {module} after a module with "
        "`inplace=True`; edits of a leaf and of a `chunk` are refused at once",
        agrees=lambda m: (
            m["callee"] == [0, 3] and m["module"] == [0, 2] and m["refused"]
        ),
    ),
    Claim(
        "C2.2i",
        "incomplete",
        "Rule of thumb: no in-place operation in `forward`, unless the value needs no "
        "gradient.",
        "stricter than needed: {right} of {tried} recorded edits gave the same gradient "
        "as without editing. What counts is whether the old value was saved",
        agrees=lambda m: m["right"] == m["tried"] >= 3,
    ),
    Claim(
        "C2.2j",
        "wrong",
        "Inside `torch.no_grad()` in-place operations can be used without worry.",
        "loss {loss:g} · w, gradient {gradient:g}; recorded, the same edit gives "
        "{recorded:g}",
        agrees=lambda m: m["gradient"] == 3 and m["recorded"] == m["loss"] == 30,
    ),
]
