"""Each gate rejects the page that was made bad for it, and lets a good one through."""

from pathlib import Path

import ledger
import lint
import pytest
from execute import run_page
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell
from pages import clean_outputs, copy_alt_texts, normalise_cells, read_source
from test_notebooks import TRY_CONTROLS
from tree import PageError, Tree

FOLDER = Path(__file__).with_name("bad_notebooks")


def source(name: str) -> NotebookNode:
    return read_source(FOLDER / f"{name}.py")


def built(name: str) -> NotebookNode:
    """The page as the build would store it."""
    page = run_page(source(name), Tree())
    normalise_cells(page)
    clean_outputs(page)
    copy_alt_texts(page)
    return page


def refused(page: NotebookNode, timeout_s: int = 60) -> str:
    """Why a page cannot be built."""
    with pytest.raises(PageError) as caught:
        run_page(page, Tree(), timeout_s=timeout_s)
    return str(caught.value)


def test_every_page_of_the_folder_is_tried():
    here = Path(__file__).read_text(encoding="utf-8")
    assert all(f'"{path.stem}"' in here for path in FOLDER.glob("*.py"))


def test_a_good_page_passes_every_gate():
    page = source("good_page")
    page.cells.append(new_code_cell(TRY_CONTROLS))
    run_page(page, Tree())
    stored = built("good_page")
    assert stored.cells[3].outputs[0].text == "all is well\n"
    assert lint.problems(stored) == []
    assert ledger.form_problems(stored) == []


def test_the_build_refuses_a_hanging_cell():
    assert "did not end within 2 s" in refused(source("hanging_cell"), timeout_s=2)


def test_the_build_refuses_a_trap_that_does_not_show():
    assert "does not show" in refused(source("trap_that_does_not_show"))


def test_the_build_refuses_a_verdict_against_its_measurement():
    said = refused(source("verdict_against_its_measurement"))
    assert "C2.1g" in said


def test_trying_the_controls_finds_a_failing_callback():
    built("failing_callback")  # nothing is seen while nobody moves it
    page = source("failing_callback")
    page.cells.append(new_code_cell(TRY_CONTROLS))
    assert "ZeroDivisionError" in refused(page)


def test_the_rules_reject_a_figure_without_alternative_text():
    found = lint.problems(built("figure_without_alt"))
    assert ["without an alternative text" in problem for problem in found] == [True]


def test_the_rules_reject_a_leaked_solution():
    found = lint.problems(built("leaked_solution"))
    assert ["a solution has leaked" in problem for problem in found] == [True]


def test_the_evidence_is_not_complete_on_an_empty_page():
    chapter = ledger.chapter("02")
    found = ledger.missing_or_extra(built("missing_trap"), chapter)
    lost = [chapter.traps, chapter.claims, chapter.exercises, chapter.explorers]
    missing = [problem for problem in found if problem.endswith("not on the page")]
    assert len(missing) == sum(map(len, lost)) > 0
