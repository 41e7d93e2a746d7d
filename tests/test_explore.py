"""An explorer keeps a picture and a sentence in step with its controls."""

import base64
import sys

import ipywidgets
import pytest
from page import showing

import labkit as lk
from labkit.lesson import registry
from labkit.lesson.explore import Choice, Explorer, Whole, Words


def draw(figure, rows, kind, name):
    if kind == "bad":
        raise ValueError("no such kind")
    axes = figure.subplots()
    axes.bar(range(rows), range(rows))
    return f"{rows} bars of kind {kind} for {name}."


EXPLORER = Explorer(
    "3.1-bars",
    draw,
    {
        "rows": Whole(1, 5, 3),
        "kind": Choice(("plain", "bad")),
        "name": Words("a", ("b",)),
    },
    {"rows": "number of rows"},
)


@pytest.fixture(autouse=True)
def chapter(monkeypatch):
    monkeypatch.delenv("LABKIT_STRICT", raising=False)
    monkeypatch.setattr(
        registry,
        "chapter_list",
        lambda kind, n: [EXPLORER] if kind == "explorer" else [],
    )


def controls(page):
    """The live controls: the only widgets that a page's outputs name."""
    models = ipywidgets.widget_serialization["from_json"]
    view = "application/vnd.jupyter.widget-view+json"
    (box,) = [o.data[view]["model_id"] for o in page.outputs if view in o.data]
    return models(f"IPY_MODEL_{box}", None).children


def test_picture_sentence_and_evidence():
    with showing() as page:
        lk.explore("3.1-bars")
    (picture,) = [o for o in page.outputs if "image/png" in o.data]
    says = "3 bars of kind plain for a."
    assert base64.b64decode(picture.data["image/png"]).startswith(b"\x89PNG")
    assert picture.data["text/plain"] == says
    assert picture.metadata["image/png"]["alt"] == says
    assert page.text.strip() == says
    (record,) = page.records
    assert record["explorer"] == "3.1-bars"
    assert record["controls"] == ["rows", "kind", "name"]


def test_a_control_changes_picture_and_sentence():
    with showing() as page:
        lk.explore("3.1-bars")
    rows, _, name = controls(page)
    assert rows.description == "number of rows"
    with showing() as after:
        rows.value = 5
        name.value = "b"
    pictures = [o for o in after.outputs if "image/png" in o.data]
    assert len(pictures) == 2
    assert pictures[-1].metadata["image/png"]["alt"] == "5 bars of kind plain for b."
    first = next(o for o in page.outputs if "image/png" in o.data)
    assert pictures[-1].data["image/png"] != first.data["image/png"]


def test_a_draw_that_raises_says_so_and_the_controls_stay_alive():
    with showing() as page:
        lk.explore("3.1-bars")
    _, kind, _ = controls(page)
    with showing() as bad:
        kind.value = "bad"
    assert "No picture" in bad.text
    assert "ValueError: no such kind" in bad.text
    with showing() as good:
        kind.value = "plain"
    assert any("image/png" in o.data for o in good.outputs)


def test_unknown_explorer_and_script(capsys):
    with showing() as page:
        lk.explore("3.1-lines")
    assert "there is no explorer '3.1-lines'; the nearest: 3.1-bars" in page.text
    lk.explore("3.1-bars")
    assert "needs a notebook" in capsys.readouterr().out


def test_show_figure_needs_words():
    from matplotlib.figure import Figure

    with showing() as page:
        lk.show_figure(Figure(), alt="An empty figure.")
        lk.show_figure(Figure(), alt=" ")
        lk.show_figure("figure.png", alt="A file.")
    (picture,) = [o for o in page.outputs if "image/png" in o.data]
    assert picture.metadata["image/png"]["alt"] == "An empty figure."
    assert "alt is a sentence" in page.text
    assert "figure is a matplotlib Figure; a str came" in page.text


def test_same_values_same_bytes():
    values = EXPLORER.start()
    assert EXPLORER.render(values) == EXPLORER.render(values)


def test_without_ipywidgets_there_is_the_first_picture(monkeypatch):
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    with showing() as page:
        lk.explore("3.1-bars")
    assert "Controls need ipywidgets" in page.text
    (picture,) = [o for o in page.outputs if "image/png" in o.data]
    assert picture.data["text/plain"] == "3 bars of kind plain for a."
