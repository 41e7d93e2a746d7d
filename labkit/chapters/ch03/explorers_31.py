"""The explorer of part 3.1: the autograd graph of an expression."""

from typing import TYPE_CHECKING

import torch

from labkit.chapters.ch03.graph import Graph, graph_of
from labkit.chapters.ch03.graph_page import HIGH, WIDE, page_of
from labkit.chapters.ch03.graph_picture import (
    draw_code,
    draw_graph,
    draw_legend,
    draw_status,
    message,
)
from labkit.chapters.ch03.graph_sample import (
    AS_IT_IS,
    DETACH,
    ITEM,
    NO_GRAD,
    both,
    gradients,
    leaves_of,
    models,
    parameters,
)
from labkit.chapters.ch03.pieces import Refused
from labkit.lesson.costs import size
from labkit.lesson.explore import Choice, Explorer, Words

if TYPE_CHECKING:
    from matplotlib.figure import Figure

THEN = {
    AS_IT_IS: "",
    DETACH: "   then h = h.detach()",
    NO_GRAD: "   under torch.no_grad()",
    ITEM: "   then h = h.item()",
}
CUT_BY = {AS_IT_IS: "cut", DETACH: "detach", NO_GRAD: "no_grad", ITEM: "item"}


def draw_graph_of(figure: "Figure", h: str, y: str, uses: str, needed: str) -> str:
    """Draw the autograd graph of `y`, which may use `h`.

    `h` and `y` are expressions in x, w and b, `uses` is what y gets for h, and `needed`
    lists the tensors that require a gradient.  Returns what the picture shows.
    """
    axes = page_of(figure)
    draw_code(axes, f"h = {h.strip()}{THEN[uses]}", f"y = {y.strip()}")
    leaves = leaves_of(needed)
    try:
        recorded, whole = both(h, y, uses, {**leaves, **models()})
    except Refused as why:
        text = f"Nothing to draw: {why}."
        message(axes, text)
        return text
    named = leaves | parameters()
    graph = graph_of(recorded, whole, named)
    if not graph.nodes:
        text = nothing(recorded, needed)
        message(axes, text)
        return text
    states = gradients(recorded, whole, named)
    left_out = draw_graph(axes, graph, states, CUT_BY[uses])
    first = about(graph, left_out)
    draw_status(
        axes, f"{first}.", wrong=bool(left_out or graph.cuts or not graph.reached)
    )
    draw_legend(axes, lost=len(graph.reached) < len(graph.nodes))
    each = ", ".join(f"{name} {state}" for name, state in states.items())
    return f"{first}." if left_out or not each else f"{first}: {each}."


def nothing(recorded: torch.Tensor, needed: str) -> str:
    if not recorded.is_floating_point():
        return (
            f"There is no graph: y is {str(recorded.dtype).removeprefix('torch.')}, and "
            "only decimals have gradients."
        )
    if recorded.requires_grad:
        return "There is no graph: y is a leaf itself, and nothing was computed."
    return (
        "There is no graph, y.grad_fn is None: nothing that y is made of requires a "
        f"gradient (only {needed} may)."
    )


def about(graph: Graph, left_out: int) -> str:
    """One sentence about the whole graph, without its stop."""
    count, lost = len(graph.reached), len(graph.nodes) - len(graph.reached)
    if not count:
        return f"y.grad_fn is None: y has no graph, and {lost} nodes are cut off"
    kept = size(graph.kept_bytes) if graph.kept_bytes else "no memory"
    more = "" if graph.whole else "more than "
    first = f"The graph of y has {more}{count:,} nodes and keeps {kept} of its own"
    if left_out:
        shown = len(graph.nodes) - left_out
        return f"{first}. Too large to draw: this is its top, {shown} nodes"
    if not graph.cuts:
        return first
    edges = "one edge is" if graph.cuts == 1 else f"{graph.cuts} edges are"
    many = "one node" if lost == 1 else f"{lost} nodes"
    nodes = f", and {many} behind it" if lost else ""
    return f"{first}; {edges} cut{nodes}"


EXPLORERS: list[Explorer] = [
    Explorer(
        id="3.1-graph",
        draw=draw_graph_of,
        controls={
            "h": Words(
                start="w.norm()",
                examples=(
                    "x @ w + b",
                    "mlp(x)",
                    "exp(x @ w).mean()",
                    "x[0].max()",
                    "w.detach().norm()",
                    "",
                    "open('x')",
                    "x @ b",
                    "(((",
                ),
            ),
            "y": Words(
                start="relu(x @ (w / h) + b).sum()",
                examples=(
                    "relu(h).log().mean()",
                    "(h * h.sum()).mean()",
                    "h + h.detach()",
                    "rnn(x).sum()",
                    "softmax(x @ w, dim=1).square().sum()",
                    "where(b > 0, b.sqrt(), b).sum()",
                    "torch.tanh(tanh(tanh(tanh(tanh(tanh(tanh(tanh(tanh(tanh(w))))))))))",
                    "stack([b, b * 2, b * 3, b * 4, b * 5, b * 6, b * 7]).sum()",
                    "w.argmax()",
                    "h * 2",
                    "h.__class__",
                    "9 ** 9 ** 9",
                    "(x[:, :, None, None] * x[:, None, :, None] * w).sum()",
                ),
            ),
            "uses": Choice((AS_IT_IS, DETACH, NO_GRAD, ITEM)),
            "needed": Choice(("w, b", "x, w, b", "w", "b", "x")),
        },
        labels={"h": "h =", "y": "y =", "uses": "y gets", "needed": "need a gradient"},
        size=(WIDE, HIGH),
    )
]
