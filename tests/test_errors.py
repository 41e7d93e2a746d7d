"""The index from error texts to pages: every text is raised where the index says."""

import json
import re
from pathlib import Path

import pytest
from page import showing

import labkit as lk
from labkit.chapters.index import ERRORS, PAGES, ErrorText
from labkit.lesson.evidence import LabError
from labkit.lesson.registry import chapter_list, chapters, find

NOTEBOOKS = Path(__file__).resolve().parents[1] / "notebooks"
TEXTS = ("text/plain", "text/markdown")


def outputs(page):
    """All that a stored page's cells put out, as one text."""
    notebook = json.loads((NOTEBOOKS / f"{page}.ipynb").read_text(encoding="utf-8"))
    texts = []
    for cell in notebook["cells"]:
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            for shown in (output.get("text"), *map(data.get, TEXTS)):
                texts.append("".join(shown or ""))
    return "\n".join(texts)


@pytest.mark.parametrize("row", ERRORS, ids=lambda row: row.text)
def test_every_text_is_shown_by_the_page_it_names(row):
    trap = find("trap", row.trap)
    if row.elsewhere:  # another build or device says it: the trap must expect it
        assert re.search(trap.symptom.match, row.text, re.IGNORECASE)
    else:
        assert row.stands_in(outputs(row.page))


def test_every_trap_that_speaks_is_in_the_index():
    speaking = {
        trap.number
        for chapter in chapters()
        for trap in chapter_list("trap", chapter)
        if trap.symptom.kind in ("raises", "warns")
    }
    assert speaking
    assert speaking <= {row.trap for row in ERRORS}


def test_the_pages_are_those_that_have_a_source():
    sources = {path.stem for path in (NOTEBOOKS / "src").glob("*.py")}
    assert set(PAGES.values()) == sources
    assert all(int(name.split("_")[0]) == chapter for chapter, name in PAGES.items())


def test_the_start_page_links_what_is_written_and_nothing_else():
    text = (NOTEBOOKS / "src" / "00_start.py").read_text(encoding="utf-8")
    rows = re.findall(r"^# \| (\d\d) [^|]+\| [^|]+\| ([^|]+) \|$", text, re.MULTILINE)
    assert [int(number) for number, _ in rows] == list(range(11))
    for number, state in rows:
        name = PAGES.get(int(number))
        if number == "00":
            assert state == "this page"
        else:
            assert state == (f"[open]({name}.ipynb)" if name else "in preparation")


def test_a_text_with_a_gap():
    row = ErrorText("Target … is out of bounds", "2.1.2")
    assert row.stands_in("IndexError: Target 4 is out of bounds.")
    assert row.stands_in("target\n  1234 is out\nof bounds")
    assert not row.stands_in("Target is out")
    assert not row.stands_in(f"Target {'x' * 50} is out of bounds")


def test_errors_without_a_message_shows_all_with_links():
    with showing() as page:
        lk.errors()
    assert page.text.count("\n") == len(ERRORS) + 1
    assert "trap 2.3.1 in [02_tensors](02_tensors.ipynb)" in page.text


def test_errors_finds_the_line_for_a_pasted_message():
    with showing() as page:
        lk.errors(
            "RuntimeError: mat1 and mat2 must have the same dtype, but got Double"
        )
    assert page.text.count("| trap ") == 1
    assert "trap 2.1.2" in page.text


def test_errors_says_when_no_page_fits():
    with showing() as page:
        lk.errors("KeyError: 'x'")
    assert "No page explains this text yet" in page.text


def test_errors_finds_a_part_of_a_message():
    with showing() as page:
        lk.errors("second time")
    assert page.text.count("| trap ") == 1
    assert "trap 3.1.2" in page.text
    assert not ErrorText("Target … is out of bounds", "2.1.2").stands_in("is out")


def test_errors_names_what_is_like_a_message():
    with showing() as page:
        lk.errors("RuntimeError: mat1 and mat2 must have the same shape")
    assert "No page explains this text yet" in page.text
    assert "Like it, but not the same" in page.text
    assert page.text.count("| trap ") == 1
    assert "trap 2.1.2" in page.text


def test_errors_wants_text(monkeypatch):
    monkeypatch.setenv("LABKIT_STRICT", "1")
    with pytest.raises(LabError, match="a ValueError came"):
        lk.errors(ValueError("x"))
