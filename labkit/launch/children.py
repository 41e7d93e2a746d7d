"""Ending the processes that a piece of code has started."""

import contextlib
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Iterator
from multiprocessing import resource_tracker
from pathlib import Path


@contextlib.contextmanager
def ending_children() -> Iterator[None]:
    """End every child process that starts inside the block and outlives it.

    Children of `multiprocessing` (DataLoader workers among them) are found everywhere;
    other children, like those of `subprocess`, where /proc lists them (Linux).
    """
    before = child_pids()
    try:
        yield
    finally:
        with unnoticed():
            for child in multiprocessing.active_children():
                if child.pid not in before:
                    child.kill()
                    child.join(5)
            for pid in child_pids() - before:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, 0)


@contextlib.contextmanager
def unnoticed() -> Iterator[None]:
    """Let no handler hear of children that end in the block.

    torch's handler takes a loader's worker that is killed for an accident, and raises in
    the place of the Interrupt or error that has ended the code.
    """
    main = threading.current_thread() is threading.main_thread()
    if sys.platform == "win32" or not main:
        yield
        return
    before = signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGCHLD, before or signal.SIG_DFL)


def child_pids() -> set[int]:
    """The ids of this process's children, as far as the system tells.

    multiprocessing's own helpers are left out: it keeps them for later children.
    """
    pids = {child.pid for child in multiprocessing.active_children() if child.pid}
    for listing in Path("/proc/self/task").glob("*/children"):
        with contextlib.suppress(OSError):  # a thread that ended meanwhile
            pids |= {int(pid) for pid in listing.read_text().split()}
    return pids - helper_pids()


def helper_pids() -> set[int | None]:
    """The resource tracker, the fork server and the compiler's, where they have started.

    None has a public name for its process.
    """
    tracker = getattr(resource_tracker, "_resource_tracker", None)
    server = getattr(sys.modules.get("multiprocessing.forkserver"), "_forkserver", None)
    compiler = sys.modules.get("torch._inductor.async_compile")
    pools = [getattr(x, "process", None) for x in getattr(compiler, "_pool_set", ())]
    return {
        getattr(tracker, "_pid", None),
        getattr(server, "_forkserver_pid", None),
        *(getattr(process, "pid", None) for process in pools),
    }
