"""Temporary folders of this process: `own_folder`.  A killed one's are removed later.

A folder's owner holds a lock on a file in it, which the system takes away with the
process, however that ends.  Process ids would not do: they are used again, and are
others in each container that shares a temporary folder.
"""

import atexit
import contextlib
import multiprocessing
import os
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from multiprocessing import process
from pathlib import Path
from typing import Any, BinaryIO

PREFIX = "labkit-"
LOCK = "owner.lock"
LONGEST = 80  # bytes of a folder's path in which a socket, of at most 104, fits

_held: dict[Path, BinaryIO] = {}


def make_folder(kind: str = "") -> Path:
    """A new folder ``labkit-kind…``, this process's as long as it lives."""
    folder = Path(tempfile.mkdtemp(prefix=PREFIX + kind)).resolve()
    file = (folder / LOCK).open("wb")
    # written to only when it is locked: `remove_stale` looks at no empty one
    if locked(file):
        file.write(b"locked")
        file.flush()
    _held[folder] = file
    return folder


def remove_folder(folder: Path) -> None:
    """Remove a folder of `make_folder`; what cannot be removed stays for later."""
    file = _held.pop(folder, None)
    if file is not None:
        file.close()  # Windows removes no open file
    shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def own_folder(kind: str = "") -> Iterator[Path]:
    """A temporary folder for the block.

    >>> with own_folder() as folder:
    ...     folder.name[:7]
    'labkit-'
    """
    folder = make_folder(kind)
    try:
        yield folder
    finally:
        remove_folder(folder)


def remove_stale() -> None:
    """Remove the folders of processes that have ended without doing it themselves."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):  # another user's, or removed meanwhile
            lock = folder / LOCK
            if folder.is_symlink() or not is_mine(folder) or not lock.stat().st_size:
                continue
            with lock.open("r+b") as file:
                stale = locked(file)
            if stale:
                shutil.rmtree(folder, ignore_errors=True)


def is_mine(folder: Path) -> bool:
    return sys.platform == "win32" or folder.stat().st_uid == os.getuid()


def locked(file: BinaryIO) -> bool:
    """Whether this process now has the lock on an open file."""
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def keep_sockets_here() -> None:
    """Let this process and its workers put multiprocessing's sockets in one folder.

    Each worker that sends a tensor has one.  Left to itself it makes a folder for it,
    ``pymp-…``, that stays where the worker or its parent is killed.
    """
    # where multiprocessing.util.get_temp_dir looks first; there is no public way
    held = process.current_process().__dict__["_config"]
    known = held.get("tempdir")
    if sys.platform == "win32" or (known is not None and Path(known).is_dir()):
        return
    if multiprocessing.parent_process() is not None:
        return
    folder, owner = make_folder(), os.getpid()
    if len(os.fsencode(folder)) > LONGEST:
        # a worker that has no room for its socket's name sends nothing, and hangs
        remove_folder(folder)
        return
    held["tempdir"] = str(folder)

    def leave() -> None:
        if os.getpid() == owner:  # not in a forked child
            remove_folder(folder)

    atexit.register(leave)


def clear_at_sigterm() -> None:
    """Let this process remove its folders where it is asked to end by SIGTERM.

    So end kernels that have used multiprocessing's resource tracker: ipykernel waits
    for that child, which does not end, and its manager loses patience.
    """
    if sys.platform == "win32" or signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:
        return
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, end_cleared)
        # a forked child forgets what has come before its first step: it begins with
        # the system's handler, which ends it at once
        os.register_at_fork(
            before=change(end_cleared, signal.SIG_DFL),
            after_in_parent=change(signal.SIG_DFL, end_cleared),
        )


def end_cleared(number: int, frame: Any) -> None:
    """Remove this process's folders, and end by the signal after all."""
    if multiprocessing.parent_process() is None:  # else they are its parent's
        for folder in list(_held):
            remove_folder(folder)
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


def change(one: Any, other: Any) -> Callable[[], None]:
    """A function that puts one handler of SIGTERM in the place of another."""

    def exchange() -> None:
        main = threading.current_thread() is threading.main_thread()
        if main and signal.getsignal(signal.SIGTERM) == one:
            signal.signal(signal.SIGTERM, other)

    return exchange
