"""``%%module NAME``: a cell as a real module, so that other processes can import it.

Worker processes started by spawn (Windows, macOS) or forkserver (Linux from Python
3.14) find a class by its module's name, and a notebook's ``__main__`` is not theirs.
"""

import atexit
import importlib
import importlib.util
import keyword
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from labkit.launch.folders import make_folder, remove_folder
from labkit.lesson.evidence import LabError, page_call, say, shell

USAGE = "%%module takes one name for the cell, like `%%module my_dataset`"


class Cells:
    """The folder that holds this process's cell modules, once there is one."""

    folder: Path | None = None
    owner: int | None = None  # a forked child must not remove its parent's folder

    @classmethod
    def place(cls) -> Path:
        if cls.folder is None:
            cls.folder = make_folder("cells-")
            cls.owner = os.getpid()
            atexit.register(cls.remove)
        # spawn hands sys.path on to its children
        if str(cls.folder) not in sys.path:
            sys.path.insert(0, str(cls.folder))
        return cls.folder

    @classmethod
    def remove(cls) -> None:
        if cls.folder is not None and os.getpid() == cls.owner:
            remove_folder(cls.folder)


def register() -> None:
    """Make ``%%module`` known to IPython; does nothing elsewhere."""
    running = shell()
    if running is not None:
        running.register_magic_function(module_magic, "cell", "module")


@page_call
def module_magic(line: str, cell: str) -> None:
    """Run the cell as the module named in `line`; the page gets its names.

    Those are the ones in ``__all__``, else all without an underscore, as if the cell had
    run here; told are those that the cell defines.  Raises LabError for a name that
    cannot be used.
    """
    module = run_module(line.strip(), cell)
    running: Any = shell()
    running.user_ns.update({name: getattr(module, name) for name in exported(module)})
    told = ", ".join(f"`{name}`" for name in defined(module)) or "no name"
    say(f"Module `{module.__name__}` gives this page {told}.")


def run_module(name: str, source: str) -> ModuleType:
    """Write `source` as the module `name`, import it anew and return it.

    The module stays importable under its name here and in child processes.  Raises
    LabError for a name that cannot be used, and whatever the source raises.

    >>> run_module("my_dataset", "SIZE = 3").SIZE
    3
    """
    check_name(name)
    path = Cells.place() / f"{name}.py"
    # A comment for the magic's own line, so that line numbers are the cell's.
    path.write_text(f"# %%module {name}\n{source}", encoding="utf-8")
    # Compiled code of the same size and second would be taken for up to date.
    Path(importlib.util.cache_from_source(str(path))).unlink(missing_ok=True)
    importlib.invalidate_caches()
    sys.modules.pop(name, None)
    return importlib.import_module(name)


def check_name(name: str) -> None:
    """LabError unless a cell can be the module `name`."""
    if not name.isidentifier():
        raise LabError(f"{USAGE}; {name!r} came")
    if keyword.iskeyword(name):
        raise LabError(f"{USAGE}; {name!r} is a word of Python's own")
    if name.startswith("__"):
        raise LabError(f"{USAGE}; names with two underscores are Python's own")
    if not is_cell_module(name) and is_installed(name):
        raise LabError(f"{USAGE}; {name!r} is the name of an installed module")


def is_cell_module(name: str) -> bool:
    return Cells.folder is not None and (Cells.folder / f"{name}.py").exists()


def is_installed(name: str) -> bool:
    return name in sys.modules or importlib.util.find_spec(name) is not None


def exported(module: ModuleType) -> list[str]:
    """The names in ``__all__``, else all without an underscore."""
    if hasattr(module, "__all__"):
        return [str(name) for name in module.__all__]
    return [name for name in vars(module) if not name.startswith("_")]


def defined(module: ModuleType) -> list[str]:
    """The exported names that were not imported from elsewhere."""
    found = []
    for name in exported(module):
        value = getattr(module, name)
        home = getattr(value, "__module__", module.__name__)
        if not isinstance(value, ModuleType) and home == module.__name__:
            found.append(name)
    return found
