"""The parts behind chapter 03's pictures: typed expressions, graphs, accumulation."""

from itertools import pairwise

import pytest
import torch

from labkit.chapters.ch03 import accumulation as acc
from labkit.chapters.ch03.expressions import evaluate
from labkit.chapters.ch03.graph import graph_of
from labkit.chapters.ch03.graph_layout import GAP, arrange
from labkit.chapters.ch03.graph_sample import (
    AS_IT_IS,
    DETACH,
    ITEM,
    NO_GRAD,
    both,
    gradients,
    leaves_of,
    models,
)
from labkit.chapters.ch03.pieces import Refused

ROOM = 7.5


@pytest.fixture
def names():
    return {**leaves_of("w, b"), **models()}


def graph(h, y, uses, names):
    leaves = {name: names[name] for name in ("x", "w", "b")}
    recorded, whole = both(h, y, uses, names)
    return graph_of(recorded, whole, leaves), gradients(recorded, whole, leaves)


def test_an_expression_is_what_python_computes(names):
    x, w, b = names["x"], names["w"], names["b"]
    got = evaluate("torch.relu(x @ w + b)[0].sum() / 2 ** 1", names)
    assert torch.equal(got, torch.relu(x @ w + b)[0].sum() / 2)


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').getcwd()",
        "x.__class__",
        "x.data",
        "mlp.forward(x)",
        "open('x')",
        "torch.load('x')",
        "(lambda: 1)()",
        "[w for w in x]",
        "x.numpy()",
        "x.add_(1)",
        "relu(x, inplace=True)",
        "w.sum(**{'dim': 0})",
        "x if 1 else w",
        "x; w",
        "",
        "x @ w @ b @ b",
        "x" * 1000,
    ],
)
def test_what_is_not_known_is_refused_in_one_sentence(text, names):
    with pytest.raises(Refused) as refused:
        evaluate(text, names)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "text",
    [
        "9 ** 9 ** 9",
        "cat([w] * 1000000)",
        "x[:, :, None, None, None] * x[:, None, :, None, None] * w",
    ],
)
def test_nothing_large_is_computed(text, names):
    with pytest.raises(Refused):
        evaluate(text, names)


def test_a_graph_tells_what_is_kept_and_whose_it_is(names):
    found, states = graph("w", "relu(x @ w).sum()", AS_IT_IS, names)
    titles = [node.title for node in found.nodes.values()]
    assert titles == ["SumBackward0", "ReluBackward0", "MmBackward0", "AccumulateGrad"]
    kept = {node.title: node.saved for node in found.nodes.values()}
    assert [saved.owner for saved in kept["MmBackward0"]] == ["x"]
    assert [saved.bytes for saved in kept["ReluBackward0"]] == [32 * 16 * 4]
    assert found.kept_bytes == 32 * 16 * 4
    assert states == {"w": "gets its gradient"}


@pytest.mark.parametrize("uses", [DETACH, NO_GRAD, ITEM])
def test_a_cut_is_an_edge_and_a_wrong_gradient(uses, names):
    found, states = graph("w.norm()", "(x @ (w / h) + b).sum()", uses, names)
    assert found.cuts == 1
    assert [n.title for n in found.nodes.values() if not n.reached] == [
        "LinalgVectorNormBackward0"
    ]
    assert states["b"] == "gets its gradient"
    assert states["w"].endswith("% off")


def test_a_cut_that_is_typed_is_seen_too(names):
    found, states = graph("x @ w", "(h + h.detach()).sum()", AS_IT_IS, names)
    assert found.cuts == 1
    assert states == {"w": "gradient 50% off"}


@pytest.mark.parametrize(
    "y",
    ["relu(x @ (w / h) + b).sum()", "w * w * w + w.sum() * b", "rnn(x)", "mlp(x) * h"],
)
def test_boxes_stand_side_by_side_on_the_page(y, names):
    found, _ = graph("w.norm()", y, AS_IT_IS, names)
    layout = arrange(found, lambda node: 1.4, ROOM, 8)
    for layer in layout.layers:
        assert layer[0].x - layer[0].width / 2 > -1e-6
        assert layer[-1].x + layer[-1].width / 2 < ROOM + 1e-6
        for left, right in pairwise(layer):
            between = right.x - right.width / 2 - left.x - left.width / 2
            assert between > GAP - 1e-6
    drawn = sum(place.node is not None for layer in layout.layers for place in layer)
    assert drawn + layout.left_out == len(found.nodes)


def test_the_sum_over_all_labels_is_right_for_every_split():
    for targets in (acc.LABELS, acc.TOKENS):
        found = acc.compared([8, 8, 1, 3], acc.SUM, "GroupNorm", targets)
        assert found.error < 1e-5
        assert found.shares == pytest.approx([1, 1, 1, 1])


def test_a_mean_of_means_is_right_for_equal_batches_only():
    equal = acc.compared([8, 8], acc.MEAN, "none", acc.LABELS)
    assert equal.error < 1e-5
    unequal = acc.compared([8, 2], acc.MEAN, "none", acc.LABELS)
    assert unequal.shares == pytest.approx([10 / 16, 10 / 4])
    assert unequal.error > 0.1
    assert acc.compared([8, 8], acc.MEAN, "BatchNorm", acc.LABELS).error > 0.1


@pytest.mark.parametrize("text", ["", "8, 0", "eight", "-3", "65", "1 " * 13, "9" * 99])
def test_sizes_that_cannot_be_drawn(text):
    with pytest.raises(acc.NotThese):
        acc.read_sizes(text)
