"""The claims of part 3.1, the graph, judged by measured values."""

from typing import Any

from labkit.lesson.costs import size
from labkit.lesson.verdict import Claim


def alive(m: dict[str, Any]) -> str:
    return (
        f"as long as something holds its end: `total += loss` over {m['batches']} batches "
        f"held {size(m['held'])} where {size(m['passing'])} pass by with `.item()`; after "
        f"a `backward` each, {m['nodes']} nodes were left"
    )


CLAIMS = [
    Claim(
        "C3.1a",
        "holds",
        "Operations on tensors that require a gradient are recorded, anew in every "
        "iteration, following the code as it ran.",
        "one function ended in `{first}` for one input and in `{second}` for another; "
        "without a tensor that requires a gradient, `grad_fn` is None",
        agrees=lambda m: (
            m["first"].startswith("Exp")
            and m["second"].startswith("Relu")
            and m["constant"]
        ),
    ),
    Claim(
        "C3.1b",
        "holds",
        "Building the graph can matter for tiny models, and is negligible in real "
        "projects.",
        lambda m: (
            "four layers of width 16 are clearly slower when recorded, of width 1024 "
            + ("hardly" if m["usual"] < 1.1 else "less so")
        ),
        agrees=lambda m: m["tiny"] > 1.05 and m["usual"] < m["tiny"] - 0.03,
    ),
    Claim(
        "C3.1c",
        "incomplete",
        "(Left unsaid: how long a graph lives.)",
        alive,
        agrees=lambda m: m["held"] > 8 * m["passing"] and m["nodes"] > 3 * m["batches"],
    ),
]
