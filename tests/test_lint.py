"""The rules for stored pages: each rejects what it is for, and a good page passes."""

import lint
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from pages import copy_alt_texts, load, normalise_cells
from tree import Tree

PNG = "iVBORw0KGgo="


def figure(alt="A line that rises from 1 to 3.", **data):
    metadata = {"image/png": {"alt": alt}} if alt else {}
    return new_output("display_data", {"image/png": PNG, **data}, metadata=metadata)


def exercise(outcome):
    record = {"exercise": "2.1-batch", "outcome": outcome}
    return new_output(
        "display_data", {"text/markdown": "x"}, metadata={"labkit": [record]}
    )


def page(*cells, title="# 2 · Tensors"):
    """A page with a title, set-up, and the given cells."""
    setup = new_code_cell("solve = False\n" * 20, metadata={"tags": ["parameters"]})
    notebook = new_notebook(cells=[new_markdown_cell(title), setup, *cells])
    normalise_cells(notebook)
    copy_alt_texts(notebook)
    return notebook


def code(source="x = 1", *outputs):
    return new_code_cell(source, outputs=list(outputs))


def text(source):
    return new_markdown_cell(source)


GOOD = [
    page(code("import labkit as lk"), text("Text."), code("y")),
    page(code('lk.predict("2.1.1")'), code('lk.trap("2.1.1", f)')),
    page(text("## 2.1\n\n### a\n\n## 2.2")),
    page(text("`x != y`, $n!$, ```a!```\n\n```python\nx!\n# no heading\n```\n")),
    page(text("[a link](https://example.org/!) · <https://example.org>")),
    page(text("✓ passed, ✗ not yet, or ! your code raised")),
    page(code("x" * 78 + "\n\n\n" + "y\n\n" * 11)),
    page(code("x", figure(), exercise("todo"))),
    page(code("torch.load(path, weights_only=True)")),
]
BAD = {
    "13 lines of code": page(code("x\n" * 13)),
    "a line of 79 characters": page(code("x" * 79)),
    "no text between them": page(code("a"), text("t"), code("b"), code("c")),
    "cells 4 and 5 are code": page(
        text("t"), code("lk.trap(1, f)"), code("lk.predict(2)")
    ),
    "does not begin with a title": page(title="## 2 · Tensors"),
    "has 2 titles": page(text("# Again")),
    "skips a level": page(text("#### Deep")),
    "ends with '.'": page(text("## A sentence.")),
    "exclamation mark": page(text("It works!")),
    "loads an image": page(text("![a picture](https://example.org/x.png)")),
    "HTML in its text": page(text("<b>bold</b>")),
    "semicolon": page(code("plot(x);")),
    "clears its output": page(code("clear_output()")),
    "starts a child whose output is lost": page(code("os.system(a)")),
    "without weights_only=True": page(code("torch.load(path, weights_only=False)")),
    "raised ValueError": page(
        code("x", new_output("error", ename="ValueError", evalue="no", traceback=[]))
    ),
    "wrote to stderr: careful": page(
        code("x", new_output("stream", name="stderr", text="careful\n"))
    ),
    "an output of type text/html": page(
        code("x", new_output("display_data", {"text/html": "<p>", "text/plain": "p"}))
    ),
    "a widget view": page(code("x", new_output("display_data", {lint.WIDGET: {}}))),
    "without an alternative text": page(code("x", figure(alt=""))),
    "does not say what the figure shows": page(code("x", figure(alt="the figure"))),
    "shows 2 figures": page(code("x", figure(), figure())),
    "2.1-batch is stored as passed": page(code("x", exercise("passed"))),
}


@pytest.mark.parametrize("good", GOOD)
def test_good_pages_pass(good):
    assert lint.problems(good) == []


@pytest.mark.parametrize(("says", "bad"), BAD.items(), ids=BAD)
def test_each_rule_rejects(says, bad):
    found = lint.problems(bad)
    assert len(found) == 1, found
    assert says in found[0]


def test_widget_state_is_rejected():
    bad = page()
    bad.metadata["widgets"] = {}
    assert lint.problems(bad) == ["the page holds widget state"]


def test_a_figure_whose_text_is_not_in_the_cell_is_rejected():
    bad = page(code("x", figure()))
    del bad.cells[2].metadata["mystnb"]
    assert ["cell's metadata" in problem for problem in lint.problems(bad)] == [True]


@pytest.mark.parametrize("name", Tree().names())
def test_stored_pages_keep_the_rules(name):
    assert lint.problems(load(Tree().notebook(name))) == []
