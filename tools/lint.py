"""Rules for a stored page that can be checked without running it.

python tools/lint.py [names]    print what is wrong; exit status 1 if anything is
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from itertools import pairwise

from ledger import records_of
from nbformat import NotebookNode
from pages import IMAGES, WIDGET, load
from tree import Tree

CELL_LINES = 12
LINE_LENGTH = 78  # what a window of 800 px shows of a line; the rest is cut off
ALT_WORDS = 4
MIMES = {"text/plain", "text/markdown", "text/latex", *IMAGES}
FENCE = re.compile(r"^(```|~~~).*?^\1\s*$", re.MULTILINE | re.DOTALL)
# what is not prose: code spans, formulas, the targets of links
NOT_PROSE = re.compile(
    r"(`+).+?\1|\$\$.+?\$\$|\$[^$\n]+\$|(?<=\])\([^)]*\)|<https?:[^>]*>", re.DOTALL
)
HEADING = re.compile(r"^(#{1,6}) +(.+?)\s*$", re.MULTILINE)
DISPLAYED = re.compile(r"!\[|<img", re.IGNORECASE)
FORBIDDEN_CODE = {
    r";\s*$": "ends with a semicolon, which nbval does not honour",
    r"\bclear_output\(": "clears its output, which nbval cannot follow",
    r"\bos\.system\(": "starts a child whose output is lost: use subprocess.run",
    r"torch\.load\((?!.*weights_only=True)": "calls torch.load without weights_only=True",
}

Problems = Iterator[str]


def problems(page: NotebookNode) -> list[str]:
    """What is wrong with a stored page, a sentence each, with the cell's number."""
    return [problem for rule in RULES for problem in rule(page)]


def long_cells(page: NotebookNode) -> Problems:
    """Code cells of at most 12 lines, none longer than the screen is wide."""
    for number, cell in _code_cells(page):
        lines = cell.source.splitlines()
        full = sum(1 for line in lines if line.strip())
        # the set-up cell is collapsed, and the same on every page
        if full > CELL_LINES and not _is_set_up(cell):
            yield f"cell {number} has {full} lines of code, over {CELL_LINES}"
        for line in lines:
            if len(line) > LINE_LENGTH and not _is_set_up(cell):
                yield f"cell {number} has a line of {len(line)} characters: {line}"


def cells_without_text(page: NotebookNode) -> Problems:
    """Text between any two code cells.

    The first two (set-up) stand together, and so do a prediction and its trap.
    """
    for number, (cell, following) in enumerate(pairwise(page.cells), start=1):
        if cell.cell_type == following.cell_type == "code" and not (
            _is_set_up(cell)
            or ("lk.predict(" in cell.source and "lk.trap(" in following.source)
        ):
            yield f"cells {number} and {number + 1} are code with no text between them"


def headings(page: NotebookNode) -> Problems:
    """One title, first; then each heading at most one level deeper than the last."""
    found = [
        (number, len(match[1]), match[2])
        for number, text in _texts(page)
        for match in HEADING.finditer(FENCE.sub("", text))
    ]
    if not found or found[0][1] != 1:
        yield "the page does not begin with a title (#)"
    titles = [title for _, level, title in found if level == 1]
    if len(titles) > 1:
        yield f"the page has {len(titles)} titles (#): {', '.join(titles)}"
    for (_, before, _), (number, level, title) in pairwise(found):
        if level > before + 1:
            yield f"cell {number}: the heading {title!r} skips a level"
    for number, _, title in found:
        if title[-1] in ".:;,":
            yield f"cell {number}: the heading {title!r} ends with {title[-1]!r}"


def prose(page: NotebookNode) -> Problems:
    """No exclamation marks, no images that a page would have to load, no HTML."""
    for number, text in _texts(page):
        plain = NOT_PROSE.sub("", FENCE.sub("", text))
        if DISPLAYED.search(plain):
            yield f"cell {number} loads an image: a page loads nothing"
        # one that stands alone is the mark of an exercise whose code raised
        elif mark := re.search(r"\S!", plain):
            place = plain[max(0, mark.start() - 30) : mark.end()]
            yield f"cell {number} has an exclamation mark in its text: …{place}"
        if re.search(r"</?[a-z]+[^<>]*>", plain):
            yield f"cell {number} has HTML in its text"


def code(page: NotebookNode) -> Problems:
    """No construct that nbval, papermill or safety rules out."""
    for number, cell in _code_cells(page):
        for pattern, why in FORBIDDEN_CODE.items():
            if re.search(pattern, cell.source, re.MULTILINE):
                yield f"cell {number} {why}"


def outputs(page: NotebookNode) -> Problems:
    """Outputs that every front end and theme shows, and nothing that went wrong."""
    if "widgets" in page.metadata:
        yield "the page holds widget state"
    for number, cell in _code_cells(page):
        for output in cell.outputs:
            if output.output_type == "error":
                yield f"cell {number} raised {output.ename}: {output.evalue}"
            elif output.get("name") == "stderr":
                first = output.text.strip().splitlines()[0]
                yield f"cell {number} wrote to stderr: {first}"
            for mime in sorted(set(output.get("data", {})) - MIMES):
                what = (
                    "a widget view" if mime == WIDGET else f"an output of type {mime}"
                )
                yield f"cell {number} stores {what}"


def figures(page: NotebookNode) -> Problems:
    """At most one figure a cell, each with a text that says what it shows."""
    for number, cell in _code_cells(page):
        shown = [
            output.metadata.get(mime, {}).get("alt", "")
            for output in cell.outputs
            for mime in IMAGES
            if mime in output.get("data", {})
        ]
        if len(shown) > 1:
            yield f"cell {number} shows {len(shown)} figures: one a cell"
        for alt in shown:
            if not alt:
                yield f"cell {number} shows a figure without an alternative text"
            elif len(alt.split()) < ALT_WORDS:
                yield f"cell {number}: {alt!r} does not say what the figure shows"
        copied = cell.metadata.get("mystnb", {}).get("image", {}).get("alt")
        if any(shown) and copied not in shown:
            yield f"cell {number} lacks its figure's text in the cell's metadata"


def leaked_solutions(page: NotebookNode) -> Problems:
    """A stored page shows every exercise as not attempted."""
    for number, record in records_of(page):
        if "exercise" in record and record.get("outcome") != "todo":
            yield (
                f"cell {number}: exercise {record['exercise']} is stored as "
                f"{record.get('outcome')}, not as todo: a solution has leaked"
            )


RULES: tuple[Callable[[NotebookNode], Problems], ...] = (
    long_cells,
    cells_without_text,
    headings,
    prose,
    code,
    outputs,
    figures,
    leaked_solutions,
)


def _is_set_up(cell: NotebookNode) -> bool:
    return "parameters" in cell.metadata.get("tags", [])


def _code_cells(page: NotebookNode) -> Iterator[tuple[int, NotebookNode]]:
    return (
        (number, cell)
        for number, cell in enumerate(page.cells, start=1)
        if cell.cell_type == "code"
    )


def _texts(page: NotebookNode) -> Iterator[tuple[int, str]]:
    return (
        (number, cell.source)
        for number, cell in enumerate(page.cells, start=1)
        if cell.cell_type == "markdown"
    )


def main(names: list[str]) -> int:
    """Check pages, all if none is named; return the exit status."""
    tree = Tree()
    found = 0
    for name in names or tree.names():
        for problem in problems(load(tree.notebook(name))):
            found += 1
            print(f"{name}: {problem}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
