"""Every page, run with its exercises solved, shows all that its chapter says.

The strict comparison of the stored outputs is nbval's, on notebooks/ itself; here is
also made sure that it has something to compare.
"""

import csv
import difflib
import json
import shutil
import subprocess
import sys
from collections import Counter
from functools import cache

import build
import ledger
import pytest
from execute import run_page
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell
from pages import load, read_source
from tree import REPOSITORY, Tree, chapter_number

TREE = Tree()
PAGES = TREE.names()

# What each page must hold: a page that lost its content would pass everything else.
COUNTS = {
    "00_start": {"trap": 1, "core": 1, "claim": 0, "exercise": 1, "explorer": 0},
    "02_tensors": {"trap": 19, "core": 8, "claim": 29, "exercise": 4, "explorer": 2},
    "03_autograd": {"trap": 13, "core": 6, "claim": 16, "exercise": 4, "explorer": 2},
    "04_data": {"trap": 17, "core": 7, "claim": 22, "exercise": 4, "explorer": 2},
    "05_training": {"trap": 19, "core": 6, "claim": 22, "exercise": 3, "explorer": 2},
    "06_multi_gpu": {"trap": 16, "core": 7, "claim": 15, "exercise": 3, "explorer": 2},
    "07_checkpoints": {
        "trap": 15,
        "core": 6,
        "claim": 13,
        "exercise": 2,
        "explorer": 2,
    },
}

# Moves every control of a page and presses every button, as a reader might: under
# LABKIT_STRICT an explorer that cannot draw raises, and so does any other callback.
TRY_CONTROLS = """
import gc
import ipywidgets

for widget in [w for w in gc.get_objects() if isinstance(w, ipywidgets.Widget)]:
    if isinstance(widget, ipywidgets.Button):
        widget.click()
    elif isinstance(widget, ipywidgets.IntSlider):
        widget.value = widget.max
        widget.value = widget.min
    elif isinstance(widget, ipywidgets.Dropdown):
        for index in reversed(range(len(widget.options))):
            widget.index = index
    elif isinstance(widget, ipywidgets.Text):
        widget.value = "?"
"""


@cache
def solved(name: str) -> NotebookNode:
    """The page as it runs with the reference answers and all controls tried."""
    page = read_source(TREE.source(name))
    page.cells.append(new_code_cell(TRY_CONTROLS))
    return run_page(page, TREE, parameters={"solve": True})


def test_every_page_is_counted():
    assert list(COUNTS) == PAGES


def test_stored_pages_are_up_to_date(capsys):
    assert build.main(["check"]) == 0, capsys.readouterr().out


@pytest.mark.parametrize("name", PAGES)
def test_every_trap_shows_and_is_fixed_and_every_exercise_passes(name):
    assert ledger.unsolved(solved(name)) == []


@pytest.mark.parametrize("name", PAGES)
def test_a_page_shows_what_its_chapter_says(name):
    chapter = ledger.chapter(chapter_number(name))
    assert ledger.missing_or_extra(solved(name), chapter) == []
    assert ledger.missing_or_extra(load(TREE.notebook(name)), chapter) == []


@pytest.mark.parametrize("name", PAGES)
def test_evidence_has_its_form(name):
    assert ledger.form_problems(solved(name)) == []
    assert ledger.form_problems(load(TREE.notebook(name))) == []


@pytest.mark.parametrize("name", PAGES)
def test_a_page_holds_as_much_as_it_should(name):
    chapter = ledger.chapter(chapter_number(name))
    found = {
        "trap": len(chapter.traps),
        "core": sum(trap.core for trap in chapter.traps.values()),
        "claim": len(chapter.claims),
        "exercise": len(chapter.exercises),
        "explorer": len(chapter.explorers),
    }
    assert found == COUNTS[name]
    shown = ledger.read(solved(name))
    assert {kind: len(shown[kind]) for kind in found if kind != "core"} == {
        kind: count for kind, count in COUNTS[name].items() if kind != "core"
    }


def audit() -> list[dict[str, str]]:
    with (REPOSITORY / "data" / "claims.csv").open(
        encoding="utf-8", newline=""
    ) as file:
        return list(csv.DictReader(file))


def test_every_claim_of_the_chapters_is_judged_by_exactly_one_page():
    sections = {str(int(chapter_number(name))) for name in PAGES}
    wanted = {
        row["claim"]: row["audit"]
        for row in audit()
        if row["section"].partition(".")[0] in sections
    }
    judged = [
        (id, record["verdict"])
        for name in PAGES
        for id, record in ledger.read(load(TREE.notebook(name)))["claim"].items()
    ]
    assert sorted(judged) == sorted(wanted.items())


def test_traps_settle_claims_that_exist():
    rows = {row["claim"] for row in audit()}
    for name in PAGES:
        for slug, trap in ledger.chapter(chapter_number(name)).traps.items():
            # rows that begin with E are the audit's own and are not in the table
            unknown = [id for id in trap.claims if id[0] != "E" and id not in rows]
            assert not unknown, slug


def test_nbval_compares_every_code_cell():
    """pytest collects each code cell of each page, and each has outputs of a real run."""
    said = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "notebooks"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    collected = Counter(
        line.partition("::")[0] for line in said.splitlines() if "::" in line
    )
    written = {}
    for name in PAGES:
        page = json.loads(TREE.notebook(name).read_text(encoding="utf-8"))
        code = [cell for cell in page["cells"] if cell["cell_type"] == "code"]
        written[f"notebooks/{name}.ipynb"] = len(code)
        # a cell whose outputs nbval ignores is still run; most must be compared
        ignored = [
            c for c in code if "nbval-ignore-output" in c["metadata"].get("tags", [])
        ]
        assert len(ignored) <= len(code) // 3, f"{name}: too much is not compared"
    assert dict(collected) == written


@pytest.mark.slow
@pytest.mark.parametrize("name", PAGES)
def test_building_again_gives_the_same_bytes(name, tmp_path):
    """A page built anew in a copy of this checkout is the stored one to the byte."""
    for part in ("labkit", "data", "notebooks"):
        shutil.copytree(REPOSITORY / part, tmp_path / part)
    for part in ("constraints.txt", "pyproject.toml"):
        shutil.copy(REPOSITORY / part, tmp_path / part)
    stored = Tree(tmp_path).notebook(name).read_text(encoding="utf-8").splitlines()
    build.build_page(Tree(tmp_path), name, timeout_s=120)
    built = Tree(tmp_path).notebook(name).read_text(encoding="utf-8").splitlines()
    assert not list(difflib.unified_diff(stored, built, "stored", "built", n=2))
