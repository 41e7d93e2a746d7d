"""The exercise of part 7.2: a training that may be killed at any moment."""

import contextlib
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from labkit.chapters.ch07 import resume_answers as answers
from labkit.chapters.ch07.resume_kill import Told, Training, training
from labkit.chapters.ch07.resume_life import PAUSE
from labkit.chapters.ch07.resume_training import MAKERS, STEPS, one_epoch, seed
from labkit.launch.folders import own_folder
from labkit.lesson.exercise import Exercise, Wrong, given

Answer = Callable[..., Any]
SAVED = 3  # the last epoch that is saved before the training is started again
KILLS = 3


@dataclass
class Resumed:
    """A run that goes on, and what `start` made of its checkpoint."""

    running: tuple[Any, Any, Any]  # model, optimizer, scheduler
    first: Any
    parts: tuple[Any, Any, Any]
    rng: tuple[Tensor, Any]  # the random states when it was saved
    found: tuple[Tensor, Any]  # and after `start`


@contextlib.contextmanager
def resumed(answer: Answer) -> Iterator[Resumed]:
    """Four epochs, each of them saved; then the script is started anew."""
    with own_folder("resume-") as folder:
        path = folder / "checkpoint.pt"
        seed()
        first, *running = started(answer, path)
        assert first == 0, (
            f"without a checkpoint training begins with epoch 0; yours begins with {first}"
        )
        for epoch in range(SAVED + 1):
            one_epoch(*running)
            given(answer().save, path, epoch, *running)
        rng = torch.get_rng_state(), random.getstate()
        assert path.exists(), "`save` left no file at `path`"
        seed()
        first, *parts = started(answer, path)
        found = torch.get_rng_state(), random.getstate()
        yield Resumed(tuple(running), first, tuple(parts), rng, found)


def started(answer: Answer, path: Path) -> tuple[Any, Any, Any, Any]:
    got = given(given(answer).start, path, *MAKERS)
    four = isinstance(got, tuple | list) and len(got) == 4
    assert four, (
        "`start` returns four things: the epoch to begin with, model, optimizer, scheduler"
    )
    return tuple(got)


def goes_on(answer: Answer) -> None:
    """where training goes on, and with which weights"""
    with resumed(answer) as run:
        assert run.first == SAVED + 1, (
            f"epoch {SAVED} was done and saved, and training begins with epoch "
            f"{run.first}: which one is next?"
        )
        theirs = run.running[0].state_dict()
        for name, mine in run.parts[0].state_dict().items():
            assert torch.equal(mine, theirs[name]), (
                f"the weight {name} is not the one that was saved"
            )


def optimizer_state(answer: Answer) -> None:
    """the state of the optimizer"""
    with resumed(answer) as run:
        want = run.running[1].state_dict()["state"]
        got = run.parts[1].state_dict()["state"]
        assert got, (
            "the optimizer begins without a state: its running means of the gradients "
            "are lost, and the next steps are far too long"
        )
        for index, state in want.items():
            for name, value in state.items():
                mine = got.get(index, {}).get(name)
                alike = mine is not None and torch.equal(mine, value)
                assert alike, (
                    f"`{name}` of weight {index} in the optimizer is not what was saved"
                )


def schedule(answer: Answer) -> None:
    """the learning rates that follow"""
    with resumed(answer) as run:
        want, got = rates(*run.running[1:]), rates(*run.parts[1:])
        assert got == want, (
            f"the next learning rates are {got}, and an unbroken run has {want}. What "
            "does a scheduler do to the optimizer when it is made?"
        )


def rates(optimizer: Any, scheduler: Any) -> list[float]:
    """The learning rates of the next three epochs."""
    found = []
    for _ in range(3):
        found.append(round(optimizer.param_groups[0]["lr"], 5))
        optimizer.step()  # no gradients: nothing moves
        scheduler.step()
    return found


def randomness(answer: Answer) -> None:
    """the random states"""
    with resumed(answer) as run:
        seed()
        seeded = torch.equal(run.found[0], torch.get_rng_state())
        assert torch.equal(run.found[0], run.rng[0]), (
            "torch's random state is not the one at the time of saving"
            + (
                ", but that of a script that has just been seeded: shuffling and "
                "dropout repeat what they did in epoch 0"
                if seeded
                else ""
            )
        )
        assert run.found[1] == run.rng[1], (
            "torch's random state is back, but Python's is not: the brightness comes "
            "from the module `random`"
        )


def killed(answer: Answer) -> None:
    """a training that is killed, three times at random moments and once while it saves"""
    moments = random.Random()  # not seeded: other moments each time
    saved = -1
    with training(answer) as run:
        for kill in range(KILLS):
            # one epoch, and so many steps of the next, so that each life saves
            step = STEPS + moments.randint(1, STEPS)
            told = run.live(die_at=step, delay=moments.uniform(0, PAUSE))
            assert told.steps >= step, f"a process ended by itself, with {said(told)}"
            begins_behind(saved, told)
            saved = max(saved, told.saved)
            if kill == 0:
                saved = max(saved, torn(run, saved))
        told = run.live()
    begins_behind(saved, told)
    assert told.done is not None, f"the last process ended early, with {said(told)}"
    far = max(told.done.values(), default=0.0)
    assert not told.done, (
        f"killed {KILLS + 1} times and resumed, {len(told.done)} of the 4 weights differ "
        f"from those of an unbroken run, by up to {far:.1g}"
    )


def torn(run: Training, saved: int) -> int:
    """Let a write break off in the middle; the last epoch that was saved before it."""
    epoch = (
        saved + 2
    )  # a kill may fall before the word about a save: one is sure to come
    told = run.live(torn=epoch)
    assert told.torn, f"a process ended by itself, with {said(told)}"
    begins_behind(saved, told)
    assert told.saved < epoch, "a write was torn, and `save` still came to its end"
    again = run.live(die_at=1)
    died = f"the process died in the middle of saving epoch {epoch}. Started again it "
    lost = f"the checkpoint of epoch {epoch - 1} is lost"
    assert again.first is not None, f"{died}raises {said(again)}: {lost}"
    assert again.first == epoch, f"{died}begins with epoch {again.first}: {lost}"
    return epoch - 1


def begins_behind(saved: int, told: Told) -> None:
    """That a life begins behind what was saved.

    A kill may fall between the end of a save and the word about it: then it begins one
    epoch later than was heard of.
    """
    assert told.first is not None, f"a process ended by itself, with {said(told)}"
    assert told.first in (saved + 1, saved + 2), (
        f"epoch {saved} was saved before the kill, and the next process begins with epoch "
        f"{told.first}"
    )


def said(told: Told) -> str:
    return f"`{told.error or 'no error'}`"


EXERCISES = [
    Exercise(
        id="7.2-resume",
        title="A training that may be killed at any moment",
        minutes=15,
        difficulty="hard",
        deliver="a class `Checkpoint` with `save` and `start`, so that a killed training "
        "ends with the same bits as one that ran through",
        reference=answers.Checkpoint,
        tests=(goes_on, optimizer_state, schedule, randomness, killed),
        hints=(
            "Which things does the loop change, in and outside of the model, that the "
            "next epoch depends on?",
            "Model, optimizer, scheduler, the number of the epoch, torch's random state, "
            "Python's random state: six entries of one dict.",
            "In `start`, make all three parts first. Only then load, and set the random "
            "states last. What is returned is the epoch after the one saved.",
            "Save under another name in the same folder, then `os.replace(new, path)`: "
            "the name `path` always leads to a whole file.",
        ),
        why="Everything that one epoch hands to the next is in the dict, and nothing is "
        "loaded before all is made. `os.replace` moves a name, in one step: whoever opens "
        "`path` finds the old file or the new one. `os.fsync` comes before it, so that "
        "the bytes are on the disk also when the power fails; a kill alone would not "
        "need it. A run that draws from NumPy or a GPU saves those states too "
        "(`torch.cuda.get_rng_state_all()`), one with a GradScaler or an average of the "
        "weights saves theirs.",
        wrong=(
            Wrong(answers.OptimizerForgotten, "begins without a state"),
            Wrong(answers.RandomForgotten, "has just been seeded"),
            Wrong(answers.TorchRandomOnly, "Python's is not"),
            Wrong(answers.SameEpochAgain, "which one is next?"),
            Wrong(answers.LoadsBeforeItBuilds, "the next learning rates are"),
            Wrong(answers.WrittenInPlace, "Started again it raises"),
            Wrong(answers.InPlaceAndHopeful, "Started again it begins with epoch 0"),
        ),
        variants=(answers.NextEpochInBytes,),
        seconds=120.0,
    )
]
