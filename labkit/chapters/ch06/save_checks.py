"""The tests of exercise 6.3-save, one for each goal that it states."""

import contextlib
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from labkit.chapters.ch06.save_ranks import loaded, try_on_ranks
from labkit.chapters.ch06.save_stage import (
    Played,
    killed_while_saving,
    no_gpu,
    playing,
    saved_on_gpu,
    small_model,
    stage,
)
from labkit.lesson.answer import TODO, NotAttempted

Answer = Callable[..., Any]
CPU = torch.device("cpu")


def save_as(
    rank: int, answer: Answer, ddp: DistributedDataParallel, path: Path
) -> Played:
    """Let the answer save while this process plays one rank."""
    with playing(rank, answer, path) as played:
        attempted(answer().save(ddp, path))
    return played


def load_as(rank: int, answer: Answer, path: Path) -> Any:
    """What the answer loads while this process plays one rank."""
    with playing(rank, answer, path):
        return attempted(answer().load(small_model(), path, CPU))


def attempted(result: Any) -> Any:
    """What a call gave.  (`given` would add to each message that `save` gave None.)"""
    if result is TODO:
        raise NotAttempted
    return result


def names(answer: Answer) -> None:
    """the names in the file"""
    with stage() as (ddp, path):
        save_as(0, answer, ddp, path)
        assert path.exists(), "rank 0 has saved, and there is no file at `path`"
        state = loaded(path)
        own = list(small_model().state_dict())
        assert isinstance(state, dict), "the file at `path` is no state of a model"
        first = next(iter(state), "none")
        assert list(state) == own, (
            f"the first name in the file is `{first}`, and in a model that is not wrapped "
            f"`{own[0]}`: whose `state_dict` is that?"
        )


def one_writer(answer: Answer) -> None:
    """who writes"""
    with stage() as (ddp, path):
        before = set(path.parent.iterdir())
        save_as(1, answer, ddp, path)
        left = sorted(file.name for file in set(path.parent.iterdir()) - before)
        assert not left, f"rank 1 wrote {', '.join(left)}: one rank is enough"


def same_calls(answer: Answer) -> None:
    """what the ranks do together"""
    with stage() as (ddp, path):
        zero, one = (save_as(rank, answer, ddp, path).calls for rank in (0, 1))
        assert zero == one, (
            f"rank 0 calls {said(zero)}, rank 1 {said(one)}: one of them waits for ever"
        )


def said(calls: list[str]) -> str:
    return ", ".join(calls) or "nothing"


def waiting(answer: Answer) -> None:
    """when the other ranks go on"""
    with stage() as (ddp, path):
        path.write_bytes(b"the checkpoint of the epoch before")
        zero, one = (save_as(rank, answer, ddp, path) for rank in (0, 1))
        assert one.calls, (
            "rank 1 comes back from `save` without having waited for rank 0: what it "
            "loads may be the file of the epoch before, or none"
        )
        assert zero.found[-1] == path.read_bytes(), (
            "the ranks meet before rank 0 has written: when rank 1 goes on, the old file "
            "is still there"
        )


def whole(answer: Answer) -> None:
    """a kill in the middle of the save"""
    with stage() as (ddp, path):
        save_as(0, answer, ddp, path)
        before = path.read_bytes()
        with killed_while_saving():
            save_as(0, answer, ddp, path)
        assert path.exists(), "the process died in `torch.save`, and `path` is gone"
        assert path.read_bytes() == before, (
            "the process died in `torch.save`, and with it the checkpoint before: it was "
            "overwritten in place"
        )


def own_device(answer: Answer) -> None:
    """the device that is loaded to"""
    with stage() as (ddp, path):
        with saved_on_gpu():
            torch.save(ddp.module.state_dict(), path)
        try:
            with no_gpu():
                found = load_as(1, answer, path)
        except RuntimeError as error:
            if "CUDA" not in str(error):
                raise
            raise AssertionError(
                "rank 0 saved on its GPU, so the file says `cuda:0`, and rank 1 puts its "
                "copy there as well; its device is another"
            ) from None
        assert isinstance(found, nn.Module), (
            f"`load` has to return the model, and it returned a {type(found).__name__}"
        )
        for name, value in ddp.module.state_dict().items():
            mine = found.state_dict()[name]
            assert mine.device == CPU, f"`{name}` is on {mine.device}, not on `device`"
            assert torch.equal(mine, value), f"`{name}` is not what was saved"


class Program:
    """Something in a file that makes a folder when it is unpickled; harmless."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.folder),)


def nothing_runs(answer: Answer) -> None:
    """a file with a program in it"""
    with stage() as (ddp, path):
        proof = path.with_name("proof")
        torch.save({**ddp.module.state_dict(), "note": Program(proof)}, path)
        # refused, or an error too late: the folder tells
        with contextlib.suppress(pickle.UnpicklingError, RuntimeError):
            load_as(1, answer, path)
        assert not proof.exists(), (
            "the file ran its own program while it was loaded: `weights_only=True` "
            "refuses that"
        )


STAGED = (names, one_writer, same_calls, waiting, whole, own_device, nothing_runs)


def real_ranks(answer: Answer) -> None:
    """two real ranks, one of them killed while it saves"""
    for test in STAGED:  # ranks are started only for an answer that may pass
        test(answer)
    judge(try_on_ranks(answer))


def judge(tried: Any) -> None:
    """That both ranks loaded what was saved, and that a torn write lost nothing."""
    problem = tried.ranks.problem
    for round_ in ("first", "second"):
        for rank, told in enumerate(tried.ranks):
            assert round_ in told, (
                f"rank {rank} did not get through the {round_} save and load: "
                f"{problem or 'it ended early'}"
            )
            assert told[round_], (
                f"rank {rank} saved, loaded at once, and got other weights in the "
                f"{round_} round"
            )
    assert tried.left is not None, (
        "rank 0 was killed in the middle of its third save, and the file at `path` can "
        "no longer be read"
    )
    saved = tried.ranks[0]["saved"]
    assert all(torch.equal(tried.left[name], saved[name]) for name in saved), (
        "rank 0 was killed in the middle of its third save, and the file is not the "
        "second one"
    )
