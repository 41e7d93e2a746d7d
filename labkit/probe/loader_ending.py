"""How a watched loader's workers end: with their parent, and without a trace."""

import multiprocessing
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing import connection, process, util
from pathlib import Path
from typing import Any

GRACE_S = 1.0  # for workers to end by themselves after an error


class _Later:
    """A signal handler that notes the first Interrupt, and raises the second."""

    def __init__(self, before: Any) -> None:
        self.before, self.came = before, False

    def __call__(self, number: int, frame: Any) -> None:
        if self.came:
            self.before(number, frame)
        self.came = True


@contextmanager
def interrupt_later() -> Iterator[None]:
    """Hold an Interrupt back until the block has ended; a second one is let through.

    Between its start and its entry in Python's list, a process would be forgotten.
    """
    before = signal.getsignal(signal.SIGINT)
    main = threading.current_thread() is threading.main_thread()
    if not main or not callable(before):
        yield
        return
    later = _Later(before)
    signal.signal(signal.SIGINT, later)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if later.came:
            before(signal.SIGINT, None)


@contextmanager
def one_folder(method: str) -> Iterator[None]:
    """Let the workers that start in the block share a temporary folder, and remove it.

    One that a worker makes for itself stays where the worker is killed.

    Args:
        method: how they are started; "" where there are none.
    """
    held = process.current_process().__dict__["_config"]
    if not method or sys.platform == "win32" or held.get("tempdir") is not None:
        yield
    elif method == "forkserver":
        util.get_temp_dir()
        yield  # its server keeps a socket there as long as this process lives
    else:
        folder = held["tempdir"] = tempfile.mkdtemp(prefix="pymp-")
        try:
            yield
        finally:
            held["tempdir"] = None
            shutil.rmtree(folder, ignore_errors=True)


def begin_worker() -> None:
    """Prepare this worker: an Interrupt ends it, and so does the end of its parent."""
    handler = signal.getsignal(signal.SIGINT)
    if isinstance(handler, _Later):
        signal.signal(signal.SIGINT, handler.before)
    parent = multiprocessing.parent_process()
    if parent is not None:
        # torch's worker looks only between batches, and may then wait for its queue
        threading.Thread(target=_follow, args=(parent,), daemon=True).start()


def _follow(parent: Any) -> None:
    above = os.getppid()
    # a process that was forked later holds the other end of the sentinel as well
    while os.getppid() == above and not connection.wait([parent.sentinel], 1.0):
        continue
    folder = process.current_process().__dict__["_config"].get("tempdir")
    if folder:
        shutil.rmtree(folder, ignore_errors=True)
    remove_segments([os.getpid()])
    os._exit(1)


def end_quickly(iterator: Any) -> None:
    """Ask the workers of torch's iterator to end, and kill those that do not soon."""
    from torch.utils.data._utils import signal_handling

    iterator._workers_done_event.set()
    for queue in iterator._index_queues:
        queue.put(None)
    end = time.monotonic() + GRACE_S
    for worker in iterator._workers:
        worker.join(max(end - time.monotonic(), 0))
    if any(worker.is_alive() for worker in iterator._workers):
        # or torch would take the signal for an accident
        signal_handling._remove_worker_pids(id(iterator))
        iterator._worker_pids_set = False
        kill(iterator._workers)


def kill(workers: Iterable[Any]) -> None:
    """End worker processes at once, and remove what they leave in shared memory."""
    workers = list(workers)
    for worker in workers:
        if worker.is_alive():
            worker.kill()
        worker.join()
    remove_segments([worker.pid for worker in workers])


def remove_segments(pids: Iterable[int]) -> None:
    """Remove the shared memory that processes were making when they were killed.

    torch names it after its maker, and removes the name as soon as it is made.
    """
    for pid in pids:
        for segment in Path("/dev/shm").glob(f"torch_{pid}_*"):
            with suppress(OSError):
                segment.unlink()
