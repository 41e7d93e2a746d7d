"""A page between its source and its stored form: reading, cleaning, writing."""

from __future__ import annotations

import hashlib
import json
import re
import sysconfig
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jupytext
import nbformat
from nbformat import NotebookNode
from nbformat.v4.rwbase import split_lines, strip_transient
from tree import REPOSITORY, PageError

KERNELSPEC = {
    "display_name": "Python 3 (ipykernel)",
    "language": "python",
    "name": "python3",
}
# Without the Python version: it is the builder's, not the reader's.
LANGUAGE_INFO = {
    "name": "python",
    "file_extension": ".py",
    "mimetype": "text/x-python",
    "pygments_lexer": "ipython3",
    "nbconvert_exporter": "python",
    "codemirror_mode": {"name": "ipython", "version": 3},
}
WIDGET = "application/vnd.jupyter.widget-view+json"
IMAGES = ("image/png", "image/jpeg")
CELL_METADATA = ("tags", "jupyter")
# Only these magics may stand in a source, each as a comment on its cell's first line,
# so that ruff can read the cell.  jupytext would take off the comment sign of every
# line that looks like a magic, `# !important` too: its own conversion is switched off.
CELL_MAGIC = re.compile(r"# (%%(?:module|torchrun)\b.*)")
PERCENT = {
    "extension": ".py",
    "format_name": "percent",
    "comment_magics": False,
}


def read_source(path: Path) -> NotebookNode:
    """The notebook that a percent-format source describes, not executed.

    Raises PageError where a magic does not stand on its cell's first line.
    """
    text = path.read_text(encoding="utf-8")
    notebook = jupytext.reads(text, fmt=PERCENT)
    magics = 0
    for cell in notebook.cells:
        cell.source = cell.source.strip("\n")
        match = CELL_MAGIC.match(cell.source)
        if cell.cell_type == "code" and match:
            cell.source = cell.source[2:]
            magics += 1
    lines = [
        number
        for number, line in enumerate(text.splitlines(), start=1)
        if CELL_MAGIC.match(line)
    ]
    if len(lines) != magics:
        places = ", ".join(map(str, lines))
        raise PageError(
            f"{path.name} has `# %%` magics on lines {places}, but only {magics} of "
            "them stand on the first line of a code cell, where they must"
        )
    normalise_cells(notebook)
    return notebook


def normalise_cells(notebook: NotebookNode) -> None:
    """Give a notebook the metadata and cell ids of a stored page, in place.

    A cell's id is made from its text: inserting a cell changes no other cell's id.
    """
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    notebook.metadata = NotebookNode(kernelspec=KERNELSPEC, language_info=LANGUAGE_INFO)
    seen: dict[str, int] = {}
    for cell in notebook.cells:
        kept = {name: cell.metadata.get(name) for name in CELL_METADATA}
        cell.metadata = NotebookNode({k: v for k, v in kept.items() if v})
        if "tags" in cell.metadata:
            cell.metadata.tags = sorted(cell.metadata.tags)
        text = f"{cell.cell_type}\0{cell.source}"
        name = hashlib.sha256(text.encode()).hexdigest()[:12]
        seen[name] = seen.get(name, 0) + 1
        cell["id"] = name if seen[name] == 1 else f"{name}-{seen[name]}"


def clean_outputs(notebook: NotebookNode, root: Path = REPOSITORY) -> None:
    """Take out of a notebook's outputs what belongs to one machine, in place.

    Widget views go, stream messages that arrived in pieces are joined, addresses and
    folders of this machine are replaced, and of the outputs' metadata only the
    evidence and the pictures' alternative texts stay.
    """
    scrub = scrubber(root)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = _joined(cell.outputs)
            for output in cell.outputs:
                _clean_output(output, scrub)
            cell.outputs = [o for o in cell.outputs if o.get("data", True)]


def _joined(outputs: list[NotebookNode]) -> list[NotebookNode]:
    # ipykernel sends stdout when a timer says so: one print may come as two messages
    joined: list[NotebookNode] = []
    for output in outputs:
        last = joined[-1] if joined else None
        if (
            last is not None
            and output.output_type == last.output_type == "stream"
            and output.name == last.name
        ):
            last.text += output.text
        else:
            joined.append(output)
    return joined


def _clean_output(output: NotebookNode, scrub: Callable[[Any], Any]) -> None:
    if output.output_type == "stream":
        output.text = scrub(output.text)
    if "data" not in output:
        return
    output.data.pop(WIDGET, None)
    for mime, content in output.data.items():
        if mime.startswith("text/"):
            output.data[mime] = scrub(content)
    metadata = NotebookNode()
    if "labkit" in output.metadata:
        metadata["labkit"] = scrub(output.metadata["labkit"])
    for mime in IMAGES:
        alt = output.metadata.get(mime, {}).get("alt")
        if mime in output.data and alt:
            metadata[mime] = NotebookNode(alt=scrub(alt))
    output.metadata = metadata


def scrubber(root: Path = REPOSITORY) -> Callable[[Any], Any]:
    """A function that takes this machine's folders and addresses out of texts.

    It goes through lists and dictionaries; anything that is no text stays as it is.
    """
    temporary = re.escape(tempfile.gettempdir())
    # a virtual environment may lie in the repository or anywhere else
    packages = "|".join(
        re.escape(sysconfig.get_path(p)) for p in ("purelib", "platlib")
    )
    patterns = [
        (re.compile(r"\bat 0x[0-9a-fA-F]{6,16}\b"), "at 0x7f0000000000"),
        (re.compile(r"""[^\s"'(]*ipykernel_\d+[/\\]\d+\.py"""), "<cell>"),
        (re.compile(rf"(?:{packages})(?![\w.-])"), "<site-packages>"),
        (re.compile(re.escape(str(root)) + r"(?![\w.-])"), "<repo>"),
        (re.compile(temporary + r"[/\\][\w.-]+"), "<tmp>"),
    ]
    home = Path.home()
    if home != Path(home.anchor):  # a home of "/" would match every path
        patterns.append((re.compile(re.escape(str(home)) + r"(?![\w.-])"), "~"))

    def scrub(value: Any) -> Any:
        if isinstance(value, str):
            for pattern, replacement in patterns:
                value = pattern.sub(replacement, value)
        elif isinstance(value, dict):
            return NotebookNode({key: scrub(item) for key, item in value.items()})
        elif isinstance(value, list):
            return [scrub(item) for item in value]
        return value

    return scrub


def copy_alt_texts(notebook: NotebookNode) -> None:
    """Copy each picture's alternative text to its cell, where the site looks for it."""
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            for mime in IMAGES:
                alt = output.get("metadata", {}).get(mime, {}).get("alt")
                if alt:
                    cell.metadata["mystnb"] = {"image": {"alt": alt}}


def dump(notebook: NotebookNode) -> str:
    """The text of a notebook file: the same notebook always gives the same bytes."""
    nbformat.validate(notebook)
    plain = json.loads(json.dumps(notebook))
    split = split_lines(strip_transient(nbformat.from_dict(plain)))
    return json.dumps(split, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def load(path: Path) -> NotebookNode:
    """The notebook in a file, in format 4."""
    return nbformat.read(path, as_version=4)
