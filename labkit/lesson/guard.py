"""Running a learner's code so that nothing it does outlasts it."""

import contextlib
import ctypes
import signal
import sys
import threading
import time
from types import FrameType, TracebackType
from typing import Any

from labkit.lesson.putback import cap_output, put_back_state

SECONDS = 5.0  # what an answer may take
OUTPUT_LIMIT = 4096  # bytes it may print
GRACE = 2.0  # seconds its `finally` and worker shutdown get before it is stopped again
SOON = 0.01  # seconds until the next look, where it cannot be stopped just now


class Runaway(BaseException):
    """The code was stopped at its time limit.

    No Exception, so that the code's own `except Exception` does not swallow it.
    """


class guarded:
    """Stop the block after `seconds`, cap what it prints, and put the process back.

    `seconds` is the wall-clock limit, after which Runaway is raised inside the block;
    `output_limit` is how many bytes it may print before the rest is dropped.  On leaving,
    these are as they were: grad and inference mode, the random state of random, NumPy
    and torch (CUDA's where it is in use), default dtype and device, thread count,
    deterministic flag, anomaly mode, torch's warn-always flag, NumPy's handling of
    floating-point errors, garbage collection, warning filters, current folder,
    recursion limit, sys.stdout and sys.stderr.  Blocks may be nested.  Whatever the
    block raises passes through.

    Only Python code can be stopped: on the main thread of a POSIX system by an alarm
    signal, which also ends a sleep; elsewhere by an exception set from a second thread,
    which arrives at the next line and which a bare `except:` can swallow for good.  One
    long call into native code is not stopped, and a block that is importing when its
    time is up gets the same time again.

    >>> with guarded(seconds=1):
    ...     torch.set_default_dtype(torch.float64)
    >>> torch.get_default_dtype()
    torch.float32
    """

    def __init__(
        self, seconds: float = SECONDS, output_limit: int = OUTPUT_LIMIT
    ) -> None:
        self.seconds = seconds
        self.output_limit = output_limit

    def __enter__(self) -> "guarded":
        self.undo = contextlib.ExitStack()
        put_back_state(self.undo)
        cap_output(self.undo, self.output_limit)
        stop = (Alarm if can_signal() else Watchdog)(self.seconds, block_of(2))
        stop.start()
        self.stop = stop
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self.stop.end()
        finally:  # also where an Interrupt arrives just now
            self.undo.close()


def can_signal() -> bool:
    """An alarm signal reaches only the main thread, and only on POSIX systems."""
    main = threading.current_thread() is threading.main_thread()
    return main and hasattr(signal, "setitimer")


class Alarm:
    """The limit by SIGALRM.  A timer that ran before goes on afterwards."""

    def __init__(self, seconds: float, owner: FrameType | None) -> None:
        self.seconds = seconds
        self.owner = owner
        self.rang = False
        self.tracer = sys.gettrace()

    def start(self) -> None:
        self.left, self.interval = signal.setitimer(signal.ITIMER_REAL, 0)
        self.began = time.monotonic()
        self.previous = signal.signal(signal.SIGALRM, self.ring)
        # An outer limit that ends sooner holds in here too.
        first = min(self.seconds, self.left) if self.left else self.seconds
        signal.setitimer(signal.ITIMER_REAL, first, GRACE)

    def ring(self, signum: int, frame: FrameType | None) -> None:
        at = place(frame, self.owner)
        if at != "block":
            again = self.seconds if at == "import" else SOON
            signal.setitimer(signal.ITIMER_REAL, again, GRACE)
            return
        if self.rang:
            # A loop with `except: pass` caught the first one: raise also at the line
            # after this one, which is the one in its handler, outside its `try`.
            sys.settrace(self.at_line)
            while frame is not None and frame is not self.owner:
                frame.f_trace = self.at_line
                frame = frame.f_back
        self.rang = True
        raise Runaway(f"stopped after {self.seconds:g} s")

    def at_line(self, frame: FrameType, event: str, arg: Any) -> Any:
        if event == "line" and place(frame, self.owner) == "block":
            raise Runaway(f"stopped after {self.seconds:g} s")
        return self.at_line

    def end(self) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, self.previous or signal.SIG_DFL)
        if self.rang:
            sys.settrace(self.tracer)
        if self.left:
            passed = time.monotonic() - self.began
            left = max(self.left - passed, 1e-3)
            signal.setitimer(signal.ITIMER_REAL, left, self.interval)
        self.owner = None


class Watchdog:
    """The limit by a thread that sets an asynchronous exception."""

    def __init__(self, seconds: float, owner: FrameType | None) -> None:
        self.seconds = seconds
        self.owner = owner
        self.watched = threading.get_ident()
        self.ended = threading.Event()
        self.fired = False
        self.lock = threading.Lock()

    def start(self) -> None:
        threading.Thread(target=self.watch, daemon=True).start()

    def watch(self) -> None:
        wait = self.seconds
        while not self.ended.wait(wait):
            with self.lock:
                at = place(sys._current_frames().get(self.watched), self.owner)
                wait = {"block": GRACE, "import": self.seconds}.get(at, SOON)
                if at == "block" and not self.ended.is_set():
                    self.fired = True
                    set_async(self.watched, Runaway)

    def end(self) -> None:
        while not self.ended.is_set():
            try:
                with self.lock:
                    self.ended.set()
            except Runaway:
                # It was on its way when the block ended: the block was in time.
                continue
        if self.fired:
            swallow_async(self.watched)
        self.owner = None


def set_async(thread: int, error: type[BaseException]) -> None:
    """Raise `error` in the thread with this id at its next line."""
    what = ctypes.py_object(error)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), what)


def swallow_async(this_thread: int) -> None:
    """Make sure that no Runaway is on its way to this thread.

    One more is set, which replaces a waiting one, and caught.  Taking it back with NULL
    would leave Python's "look for it" flag up for good, with which a traced function
    does not go on (seen on Python 3.11).
    """
    try:
        set_async(this_thread, Runaway)
        while True:
            pass
    except Runaway:
        return


def block_of(depth: int) -> FrameType | None:
    """The frame whose `with` block this is, also through an ExitStack."""
    frame: FrameType | None = sys._getframe(depth)
    while frame is not None and frame.f_code.co_filename == contextlib.__file__:
        frame = frame.f_back
    return frame


def place(frame: FrameType | None, owner: FrameType | None) -> str:
    """Where the code is: in the "block", in an "import" from it, or "outside".

    Outside is also this module's own clearing up.  An import must not be cut short: torch
    loads parts of itself on first use (seconds), and half a part cannot be loaded again.
    """
    at = "block"
    while frame is not None and frame is not owner:
        file = frame.f_code.co_filename
        if file == place.__code__.co_filename:
            return "outside"
        if file.startswith("<frozen importlib"):
            at = "import"
        frame = frame.f_back
    return at if frame is not None else "outside"
