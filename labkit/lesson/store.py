"""The learner's file: small, safe under several kernels and a kill at any moment."""

import contextlib
import os
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from labkit.lesson.evidence import say
from labkit.lesson.session import current

WAIT = 0.2  # seconds for another kernel's lock: its writes take milliseconds
T = TypeVar("T")


def home() -> Path:
    """The folder of the learner's data: LABKIT_HOME, or the platform's place for it."""
    if os.environ.get("LABKIT_HOME"):
        return Path(os.environ["LABKIT_HOME"]).expanduser()
    user = Path.home()
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or user / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = user / "Library" / "Application Support"
    else:
        base = Path(os.environ.get("XDG_DATA_HOME") or user / ".local" / "share")
    return base / "pytorch-pitfall-lab"


def path() -> Path:
    """The progress file."""
    return home() / "progress.sqlite"


def with_file(act: Callable[[sqlite3.Connection], T], otherwise: T) -> T:
    """`act` on the open file; `otherwise`, and a word once, where that does not work.

    A file that is not a database any more is put aside and a new one started.
    """
    try:
        for _ in range(2):
            file = path()
            before = identity(file)
            try:
                with opened(file) as connection:
                    return act(connection)
            except sqlite3.OperationalError:
                raise
            except sqlite3.DatabaseError as error:
                put_aside(file, before, error)
        raise OSError("the file is damaged again and again")
    except (sqlite3.OperationalError, OSError, RuntimeError) as error:
        # locked, read-only, no such folder, no home folder
        tell_once(f"{why(error)}; the page goes on.")
        return otherwise


def why(error: Exception) -> str:
    """What it means for the learner that the progress file could not be used."""
    if "locked" in str(error):
        return "the progress file is busy: what you did is written a little later"
    return (
        f"the progress file cannot be used ({error}): what you do is not kept until "
        "LABKIT_HOME is a folder that you can write to"
    )


@contextlib.contextmanager
def opened(file: Path) -> Iterator[sqlite3.Connection]:
    """The file as a database, made where there is none.

    In SQLite's default journal, since a write-ahead log needs memory shared between its
    users, which network drives lack: https://sqlite.org/wal.html
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.closing(sqlite3.connect(file, timeout=WAIT)) as connection:
        connection.execute(
            "CREATE TABLE IF NOT EXISTS events "
            "(kind TEXT, item TEXT, outcome TEXT, detail TEXT)"
        )
        yield connection


def identity(file: Path) -> tuple[int, int] | None:
    """What tells this file from a later one of the same name; None if there is none."""
    if not file.exists():
        return None
    seen = file.stat()
    return seen.st_ino, seen.st_mtime_ns


def put_aside(file: Path, before: tuple[int, int] | None, error: Exception) -> None:
    """Rename a damaged file, unless another kernel has done so already."""
    if before is None or identity(file) != before:
        return
    aside = file.with_name(f"{file.name}.corrupt-{time.strftime('%Y-%m-%d-%H%M%S')}")
    file.replace(aside)
    tell_once(
        f"the progress file was damaged ({error}): it is kept as `{aside.name}` in "
        f"`{file.parent}`, and a new one is started."
    )


def tell_once(says: str) -> None:
    """Say it, unless something was said about the file in this session already."""
    notes = current().note("progress")
    if not notes.get("told"):
        notes["told"] = True
        say(f"**Progress** · {says}")
