"""Starting, killing and resuming the training of exercise 7.2-resume."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from labkit.launch.folders import own_folder
from labkit.lesson.answer_source import NoSource, source_of

PATIENCE = 40.0  # seconds until a process that says nothing is given up
SCRIPT = "labkit.chapters.ch07.resume_life"
KILL = getattr(signal, "SIGKILL", signal.SIGTERM)  # on Windows: TerminateProcess


@dataclass
class Told:
    """What a life said before it ended."""

    pid: int | None = None
    first: int | None = None  # the epoch it began with
    saved: int = -1  # the last epoch whose save was finished
    steps: int = 0
    torn: bool = False
    done: dict[str, float] | None = None  # the weights that differ, by name
    error: str = ""  # the last line of a traceback

    def hear(self, line: str) -> None:
        """Note what one line of the process says; the answer's own prints are none."""
        what, _, rest = line.strip().partition(" ")
        if what in ("@pid", "@first", "@saved"):
            setattr(self, what[1:], int(rest))
        elif what == "@step":
            self.steps += 1
        elif what == "@tearing":
            self.torn = True
        elif what == "@done":
            self.done = json.loads(rest)


class Training:
    """The learner's training in a folder: it can be let run, and killed, again and again.

    No process outlasts the `with` block that `training` gives.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.process: subprocess.Popen[str] | None = None

    def live(
        self, die_at: int | None = None, delay: float = 0.0, torn: int | None = None
    ) -> Told:
        """One life: to the end of the training, to a kill, or to a torn write.

        It is killed `delay` seconds after its step number `die_at`, counted from 1;
        `torn` is the epoch whose write breaks off.
        """
        process = self.ready()
        assert process.stdin is not None
        assert process.stdout is not None
        told = Told()
        orders = {"torn": torn, "die_at": die_at}
        alarm = threading.Timer(PATIENCE, self.stop)
        alarm.start()
        try:
            with contextlib.suppress(
                BrokenPipeError
            ):  # it has ended: its error is read
                process.stdin.write(json.dumps(orders) + "\n")
                process.stdin.flush()
            for line in process.stdout:
                if line.startswith("@ended"):
                    break
                told.hear(line)
                if die_at and told.steps == die_at and told.pid:
                    time.sleep(delay)
                    os.kill(told.pid, KILL)
                    die_at = None  # what is still in the pipe is read on
        finally:
            alarm.cancel()
        told.error = self.last_error()
        return told

    def ready(self) -> "subprocess.Popen[str]":
        """The process that lives next; a new one where the last has ended."""
        if self.process is None or self.process.poll() is not None or not self.forks:
            self.stop()
            paths = os.pathsep.join(path for path in sys.path if path)
            with open(self.folder / "errors.txt", "wb") as errors:
                self.process = subprocess.Popen(
                    [sys.executable, "-P", "-m", SCRIPT, str(self.folder)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    env={**os.environ, "PYTHONPATH": paths},
                    encoding="utf-8",
                    start_new_session=True,  # so that `stop` reaches its children
                )
        return self.process

    @property
    def forks(self) -> bool:
        """Whether one process lives several times: see resume_life."""
        return sys.platform == "linux"

    def last_error(self) -> str:
        text = (self.folder / "errors.txt").read_text("utf-8", "replace").strip()
        return text.splitlines()[-1] if text else ""

    def stop(self) -> None:
        """End the process and those it has started."""
        process, self.process = self.process, None
        if process is None:
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if sys.platform == "win32":
                process.kill()
            else:
                os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for pipe in (process.stdin, process.stdout):
            with contextlib.suppress(OSError):
                assert pipe is not None
                pipe.close()


@contextlib.contextmanager
def training(answer: Any) -> Iterator[Training]:
    """The training with the learner's class, in a folder and in processes of its own.

    Neither outlasts the block.  AssertionError where the class cannot be brought there.
    """
    try:
        source = source_of(answer)
    except NoSource as why:
        raise AssertionError(f"{why}") from None
    with own_folder("resume-") as folder:
        (folder / "answer.py").write_text(source, encoding="utf-8")
        held = Training(folder)
        try:
            yield held
        finally:
            held.stop()
