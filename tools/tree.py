"""Where things stand in the repository, and the hashes that say what a page is from."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[1]

# What may be stale: the hash in the notebook's metadata, and how a person says it.
INPUTS = {
    "source_sha256": "the page's source",
    "chapter_sha256": "its chapter folder",
    "labkit_sha256": "labkit",
    "constraints_sha256": "constraints.txt",
}


class PageError(ValueError):
    """A page, or its source, is not as the project's rules want it."""


@dataclass(frozen=True)
class Tree:
    """A checkout: the paths that the build reads and writes."""

    root: Path = REPOSITORY

    @property
    def notebooks(self) -> Path:
        return self.root / "notebooks"

    def names(self) -> list[str]:
        """The names of all pages that have a source, in order."""
        return sorted(path.stem for path in (self.notebooks / "src").glob("*.py"))

    def source(self, name: str) -> Path:
        return self.notebooks / "src" / f"{name}.py"

    def notebook(self, name: str) -> Path:
        return self.notebooks / f"{name}.ipynb"

    def chapter(self, name: str) -> Path:
        """The folder of the page's chapter, which need not exist."""
        return self.root / "labkit" / "chapters" / f"ch{chapter_number(name)}"


def chapter_number(name: str) -> str:
    """The two digits that a page's name begins with.

    Example: ``chapter_number("02_tensors")`` is ``"02"``.
    """
    match = re.match(r"\d\d(?=_)", name)
    if match is None:
        raise PageError(
            f"a page is called NN_name, with two digits; {name!r} came instead"
        )
    return match.group()


def input_hashes(tree: Tree, name: str) -> dict[str, str]:
    """The SHA-256 of everything that a page's stored outputs depend on, by name."""
    labkit = tree.root / "labkit"
    chapters = labkit / "chapters"
    common = (
        path
        for path in _files(labkit)
        # every page has its own chapter's hash: another chapter changes nothing here
        if path.parent == chapters or not path.is_relative_to(chapters)
    )
    return {
        "source_sha256": _sha256(tree.root, [tree.source(name)]),
        "chapter_sha256": _sha256(tree.root, _files(tree.chapter(name))),
        "labkit_sha256": _sha256(tree.root, common),
        "constraints_sha256": _sha256(tree.root, [tree.root / "constraints.txt"]),
    }


def page_hash(cells: Iterable[Mapping[str, Any]]) -> str:
    """The SHA-256 of what an author wrote in a page: outputs and counts do not matter.

    cells: the cells of a notebook, as nbformat or as plain JSON has them.
    """
    digest = hashlib.sha256()
    for cell in cells:
        source = cell["source"]
        text = source if isinstance(source, str) else "".join(source)
        tags = sorted(cell.get("metadata", {}).get("tags", []))
        for part in (cell["cell_type"], text, *tags):
            digest.update(part.encode() + b"\0")
        digest.update(b"\1")
    return digest.hexdigest()


def _files(folder: Path) -> list[Path]:
    """All files of a folder that belong to the project, in order."""
    return sorted(
        path
        for path in folder.rglob("*")
        if path.is_file() and path.suffix != ".pyc" and "__pycache__" not in path.parts
    )


def _sha256(root: Path, paths: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for path in paths:
        # a checkout on Windows may have other line ends: they are not a change
        content = path.read_bytes().replace(b"\r\n", b"\n")
        digest.update(path.relative_to(root).as_posix().encode() + b"\0")
        digest.update(str(len(content)).encode() + b"\0" + content)
    return digest.hexdigest()
