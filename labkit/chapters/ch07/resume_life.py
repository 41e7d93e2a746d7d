"""Lives of the training of exercise 7.2-resume: processes that will be killed.

    python -m labkit.chapters.ch07.resume_life FOLDER

A line of JSON comes in for each life: {"torn": the epoch whose write is torn, "die_at":
the step after which it will be killed}, both null where there is none.  Out go lines that
begin with "@": what has been done, and at the end how the weights compare with those of a
run that was never interrupted.
"""

import importlib.util
import itertools
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import torch

from labkit.chapters.ch07.resume_training import (
    NoCheckpoint,
    make_model,
    make_optimizer,
    train,
)
from labkit.lesson.torn_write import tear_writes

NAME = "checkpoint.pt"
PAUSE, FOR_EVER = 0.004, 600.0  # seconds
LATE = 3  # steps that a kill may come late
# A fork spares each life the import of torch.  Elsewhere one process lives once: macOS
# does not let a forked process use all of its libraries, and Windows does not fork.
FORKS = sys.platform == "linux"


def main(folder: Path) -> None:
    """Live as often as a line comes in."""
    torch.set_num_threads(1)
    make_optimizer(make_model())  # the first optimizer imports parts of torch: seconds
    for line in sys.stdin:
        if not FORKS:
            live(folder, **json.loads(line))
            return
        child = os.fork()
        if child == 0:
            try:
                live(folder, **json.loads(line))
            except BaseException:
                sys.excepthook(*sys.exc_info())
            finally:
                sys.stderr.flush()
                os._exit(0)
        os.waitpid(child, 0)
        say("ended")


def live(folder: Path, torn: int | None, die_at: int | None) -> None:
    """Train until killed, or to the end."""
    say("pid", os.getpid())
    path = folder / NAME
    steps = itertools.count(1)

    def after_step(epoch: int, step: int) -> None:
        say("step", epoch, step)
        if die_at:  # slow enough to be killed in time, however busy the machine is
            time.sleep(PAUSE if next(steps) < die_at + LATE else FOR_EVER)

    def before_save(epoch: int) -> None:
        if epoch == torn:
            tear_next_write(path)

    model = train(
        answer_in(folder)(),
        path,
        after_step=after_step,
        tell=say,
        before_save=before_save,
    )
    say("done", json.dumps(difference(model, train(NoCheckpoint(), path))))


def say(what: str, *more: object) -> None:
    print(f"@{what}", *more, flush=True)


def answer_in(folder: Path) -> Any:
    """The learner's class, from the file that the check has written."""
    spec = importlib.util.spec_from_file_location("answer", folder / "answer.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["answer"] = module
    spec.loader.exec_module(module)
    return getattr(module, module.ANSWER)


def difference(one: torch.nn.Module, other: torch.nn.Module) -> dict[str, float]:
    """By name, how far those weights are apart that are not the same to the last bit."""
    theirs = other.state_dict()
    return {
        name: float((mine - theirs[name]).abs().max())
        for name, mine in one.state_dict().items()
        if mine.numpy().tobytes() != theirs[name].numpy().tobytes()
    }


def tear_next_write(path: Path) -> None:
    """Let this process end once a file is half as long as the checkpoint."""
    say("tearing")
    sizes = [file.stat().st_size for file in path.parent.glob(f"*{path.suffix}*")]
    tear_writes(max(sizes, default=2) // 2)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
