"""Which stored outputs outlive a new build.

The outputs of a cell tagged ``volatile`` differ from run to run: timings, and pictures
of timings.  Were they always replaced, each build would touch every page; were they
kept while the page's text is the same, they could stay when what they show has changed.
So the old outputs are kept only if the new ones say the same, numbers aside, and
nothing that the cell depends on has changed.
"""

from __future__ import annotations

import re
from typing import Any

from nbformat import NotebookNode
from pages import IMAGES

# Numbers, and the clock that `compare` could rely on: measured like a number, it depends
# on how busy the machine was.
NUMBER = re.compile(
    r"[-+]?\d[\d.,_]*(?:e[-+]?\d+)?|\b(?:wall|processor)(?= time\b)", re.IGNORECASE
)
SPACES = re.compile(r"[ \t]+")


def keep_outputs(new: NotebookNode, old: NotebookNode) -> None:
    """Put the old outputs of volatile cells in place of equal new ones, in place.

    Both notebooks are cleaned; the caller has made sure that the chapter folder, labkit
    and the constraints are those that the old one was built from.
    """
    for cell, before in zip(new.cells, old.cells, strict=False):
        if _author_part(cell) != _author_part(before):
            return  # this cell and all after it may depend on the change
        if "volatile" in cell.metadata.get("tags", []) and (
            [face(output) for output in cell.outputs]
            == [face(output) for output in before.outputs]
        ):
            cell.outputs = before.outputs


def face(output: NotebookNode) -> Any:
    """What an output says, once digits and measured values are masked.

    A picture says what its alternative text says; without one, it is its bytes.
    """
    metadata = output.get("metadata", {})
    data = dict(output.get("data", {}))
    for mime in IMAGES:
        alt = metadata.get(mime, {}).get("alt")
        if mime in data and alt:
            data[mime] = _mask(alt)
    return {
        "kind": output.output_type,
        "stream": (output.get("name"), _mask(output.get("text", ""))),
        "data": {
            mime: _mask(content) if mime.startswith("text/") else content
            for mime, content in data.items()
        },
        "evidence": [_masked_record(record) for record in metadata.get("labkit", [])],
    }


def _author_part(cell: NotebookNode) -> tuple[str, str, list[str]]:
    return cell.cell_type, cell.source, cell.metadata.get("tags", [])


def _mask(text: str) -> str:
    # columns are as wide as their numbers: the width of a gap says nothing either
    return SPACES.sub(" ", NUMBER.sub("0", text))


def _masked_record(record: dict[str, Any]) -> dict[str, Any]:
    masked = {key: value for key, value in record.items() if key != "measured"}
    if "observed" in masked:
        masked["observed"] = _mask(masked["observed"])
    return masked
