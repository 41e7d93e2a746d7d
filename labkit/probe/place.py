"""Where the learner's own code is now: the line, with its cell or file."""

import linecache
import sys
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import torch

# frames of torch and of this package are not the learner's lines
_NOT_THEIRS = (str(Path(torch.__file__).parent), str(Path(__file__).parent))


@dataclass(frozen=True)
class Place:
    """A line of code, kept as names and numbers until somebody reads it."""

    file: str
    line: int

    def __str__(self) -> str:
        source = " ".join(linecache.getline(self.file, self.line).split())
        if len(source) > 60:
            source = source[:59] + "…"
        shown = f": `{source}`" if source and "`" not in source else ""
        return f"{_file_name(self.file)}, line {self.line}{shown}"


def here() -> Place | None:
    """Return the innermost line that is neither torch's nor this package's."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith(_NOT_THEIRS):
            return Place(file, frame.f_lineno)
        frame = frame.f_back
    return None


def at(function: str, place: Place | None) -> str:
    """Return a function's name with the line it was called in, where that is known."""
    return f"{function} ({place})" if place is not None else function


def within(file_name: str) -> bool:
    """Return whether a function of a file whose path ends so is running now."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename.endswith(file_name):
            return True
        frame = frame.f_back
    return False


def _file_name(file: str) -> str:
    shell: Any = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    # a cell's file is a temporary one; IPython knows the cell's number by its name
    cells = getattr(getattr(shell, "compile", None), "_filename_map", {})
    if file in cells:
        return f"cell {cells[file]}"
    if file.startswith("<ipython-input") or "ipykernel_" in file:
        return "a cell"
    return Path(file).name
