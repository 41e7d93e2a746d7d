"""What the doctor looks at, one function a line of its report."""

import hashlib
import platform
import re
import sys
from dataclasses import dataclass
from importlib import metadata

import numpy as np
import torch

from labkit import __version__
from labkit.lesson import machine, store
from labkit.lesson.data import FOLDER
from labkit.lesson.session import pick_device

GB = 1e9
MIN_MEMORY = 2 * GB
MIN_DISK = 0.5 * GB
MIN_PYTHON = (3, 11)
PACKAGES = {  # package: oldest version that the pages are made for
    "torch": "2.6",
    "numpy": "1.26",
    "ipython": "7.34",
    "ipywidgets": "7.7",
    "matplotlib": "3.8",
}


@dataclass(frozen=True)
class Line:
    """One thing: `ok` is None where it could not be found out; `says` how to mend it."""

    what: str
    ok: bool | None
    says: str


def python() -> Line:
    here = platform.python_version()
    if sys.version_info[:2] >= MIN_PYTHON:
        return Line("Python", True, here)
    return Line("Python", False, f"{here}: install 3.11 or newer, and start again")


def package(name: str, oldest: str) -> Line:
    """Is it installed, and new enough?  Read from its metadata, without an import."""
    mend = f"`python -m pip install -U {name}`"
    try:
        here = metadata.version(name)
    except metadata.PackageNotFoundError:
        return Line(name, False, f"not installed: {mend}")
    if numbers(here) >= numbers(oldest):
        return Line(name, True, here)
    return Line(name, False, f"{here} is older than {oldest}: {mend}")


def numbers(version: str) -> tuple[int, ...]:
    return tuple(int(n) for n in re.findall(r"\d+", version)[:2])


def bridge() -> Line:
    """A torch that was built for another NumPy imports, and then cannot share arrays."""
    what = "torch and NumPy together"
    try:
        torch.from_numpy(np.ones(1)).numpy()
    except RuntimeError as error:
        mend = "`python -m pip install -U torch numpy`"
        return Line(what, False, f"{str(error).splitlines()[0]}: {mend}")
    return Line(what, True, "they share arrays")


def device() -> Line:
    """Which device a page uses, and for what this torch was built."""
    build = "CPU build"
    if torch.version.cuda:
        build = f"CUDA {torch.version.cuda} build"
    elif torch.version.hip:
        build = f"ROCm {torch.version.hip} build"
    chosen = pick_device("auto")
    if chosen.type == "cpu":
        note = "; it sees no GPU here, and every page runs without one"
        return Line(
            "device", True, f"cpu ({build}{note if torch.version.cuda else ''})"
        )
    return Line("device", True, f"{chosen.type} ({build})")


def cores() -> Line:
    count = machine.cores()
    few = "" if count > 1 else ": enough, but pages with worker processes take longer"
    return Line("cores", True, f"{count}{few}")


def memory() -> Line:
    total, free = machine.memory()
    if total is None:
        return Line("memory", None, "this system does not tell")
    says = f"{total / GB:.1f} GB in all"
    if free is None:
        ok = total >= MIN_MEMORY
        return Line("memory", ok, f"{says}; how much is free is not known")
    says += f", {free / GB:.1f} GB free"
    if free >= MIN_MEMORY:
        return Line("memory", True, says)
    return Line("memory", False, f"{says}: close other programs or notebooks")


def disk() -> Line:
    try:
        free = machine.free_disk(store.home())
    except (OSError, RuntimeError) as error:
        return Line("disk", None, f"not known ({error})")
    says = f"{free / GB:.1f} GB free"
    if free >= MIN_DISK:
        return Line("disk", True, says)
    return Line("disk", False, f"{says}: the pages need {MIN_DISK / GB:g} GB")


def data() -> Line:
    """Are the files there, and those that data/README.md names the ones it means?"""
    table = FOLDER / "README.md"
    if not table.is_file():
        return Line("data", False, f"{FOLDER} is missing: run from a full checkout")
    rows = re.findall(
        r"^\| `([^`]+)` \|.*\| `([0-9a-f]{64})` \|", table.read_text("utf-8"), re.M
    )
    wrong = [name for name, digest in rows if sha256(name) != digest]
    if wrong:
        mend = f"`git checkout -- data` in {FOLDER.parent} brings them back"
        return Line("data", False, f"missing or changed: {', '.join(wrong)}; {mend}")
    return Line("data", True, f"{len(rows)} file{'s' * (len(rows) != 1)}, as published")


def sha256(name: str) -> str:
    path = FOLDER / name
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


def progress_file() -> Line:
    """Can what you do be kept?  Tried with a transaction that is taken back."""
    try:
        file = store.path()
        with store.opened(file) as connection:
            # to begin is allowed on a read-only file: only a write tells
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("INSERT INTO events VALUES ('', '', '', '')")
            connection.rollback()
    except (store.sqlite3.Error, OSError, RuntimeError) as error:
        mend = "set LABKIT_HOME to a folder that you can write to"
        return Line("progress", False, f"cannot be kept ({error}): {mend}")
    return Line("progress", True, f"kept in {file.parent}")


def version() -> Line:
    """Is the labkit that runs the one that was installed?"""
    try:
        installed = metadata.version("labkit")
    except metadata.PackageNotFoundError:
        return Line("labkit", True, f"{__version__}, used from its folder")
    if installed == __version__:
        return Line("labkit", True, __version__)
    mend = "`python -m pip install --no-deps -e .` in its folder"
    return Line(
        "labkit", False, f"{installed} is installed and {__version__} runs: {mend}"
    )
