"""Chapter 04's traps show, and are fixed, under each way to start a worker.

The page runs under one of them (fork, where there is one).  Here its traps are run under
each: macOS and Windows spawn, and Linux has a forkserver from Python 3.14.
"""

import re

import ledger
import pytest
import torch
from execute import run_page
from nbformat.v4 import new_code_cell
from pages import read_source
from tree import Tree

TREE = Tree()
PAGE = "04_data"
PARTS = ("4.1", "4.2")  # those with workers
METHODS = ("fork", "forkserver", "spawn")
CELL_TIMEOUT_S = 300  # a spawned worker imports torch: seconds for each
SECTION = re.compile(r"^##+ ", re.MULTILINE)
CALL = re.compile(r'lk\.(?:trap|fix|predict)\("(\d+\.\d+)\.\d+"')
SETS_METHOD = re.compile(r"^start_method = ", re.MULTILINE)

# Nothing that a cell has started outlives it.
NOTHING_LEFT = """
import gc
import multiprocessing

gc.collect()
assert multiprocessing.active_children() == []
"""


def sections(notebook):
    """The cells of each section, by its heading's first cell; the first is the set-up."""
    found = [[]]
    for cell in notebook.cells:
        if cell.cell_type == "markdown" and SECTION.search(cell.source):
            found.append([])
        found[-1].append(cell)
    return found


def numbers(cells):
    """The parts that have traps in these cells."""
    return {number for cell in cells for number in CALL.findall(cell.source)}


def with_traps_only(notebook):
    """Leave the set-up and, of each of PARTS, all up to its last trap; in place."""
    first, *others = sections(notebook)
    kept = [*first]
    for part in PARTS:
        its = list(range(len(others)))
        begins = next(i for i in its if others[i][0].source.startswith(f"## {part} "))
        ends = max(i for i in its if part in numbers(others[i]))
        kept += [cell for section in others[begins : ends + 1] for cell in section]
    notebook.cells = kept
    return notebook


def started_by(method, notebook):
    """Have the set-up choose `method`, whatever the system's own is."""
    cells = [c for c in notebook.cells if SETS_METHOD.search(c.source)]
    assert len(cells) == 1, "the page sets start_method in one place"
    cells[0].source += f'\nstart_method = "{method}"'
    return notebook


def traps():
    """The traps of PARTS, by slug."""
    every = ledger.chapter("04").traps
    return {slug for slug in every if slug.split("-")[0] in PARTS}


def page():
    return with_traps_only(read_source(TREE.source(PAGE)))


def test_the_sections_with_traps_are_found():
    text = "\n".join(cell.source for cell in page().cells)
    called = re.findall(r'lk\.predict\("(4\.[12]\.\d+)"\)', text)
    wanted = [
        trap.number
        for slug, trap in ledger.chapter("04").traps.items()
        if slug in traps()
    ]
    assert called == wanted
    assert len([number for number in called if number.startswith("4.2")]) == 8


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_every_trap_shows_and_is_fixed(method):
    if method not in torch.multiprocessing.get_all_start_methods():
        pytest.skip(f"this system has no {method}")
    notebook = started_by(method, page())
    notebook.cells.append(new_code_cell(NOTHING_LEFT))
    ran = ledger.read(run_page(notebook, TREE, timeout_s=CELL_TIMEOUT_S))["trap"]
    assert set(ran) == traps()
    bad = {slug: r["observed"] for slug, r in ran.items() if not r["shown"]}
    assert not bad, "do not show"
    bad = {slug: r["observed"] for slug, r in ran.items() if not r["fixed"]}
    assert not bad, "are not fixed"
