"""One process that plays a rank of two, and notes what an answer makes all ranks do."""

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from labkit.launch.folders import own_folder

RANKS = 2
ALIKE = (
    "barrier monitored_barrier broadcast all_reduce reduce all_gather gather scatter "
    "all_gather_into_tensor all_gather_object broadcast_object_list gather_object "
    "scatter_object_list all_to_all reduce_scatter"
).split()
"""What has to be called by all ranks, in the same order."""


@dataclass
class Played:
    """What a rank did: the collectives, and what was in the file at each of them."""

    calls: list[str] = field(default_factory=list)
    found: list[bytes | None] = field(default_factory=list)


class Killed(BaseException):
    """The end of a process, which no `except Exception` outlives."""


@contextlib.contextmanager
def group_of_one() -> Iterator[None]:
    """A process group, so that DDP can be made here; the page's where it has one."""
    if dist.is_initialized():
        yield
        return
    store = dist.HashStore()  # in memory: no port, no file
    dist.init_process_group("gloo", store=store, rank=0, world_size=1)
    try:
        yield
    finally:
        dist.destroy_process_group()


@contextlib.contextmanager
def stage() -> Iterator[tuple[DistributedDataParallel, Path]]:
    """A model in DDP, and the path of its checkpoint in a folder of its own."""
    with own_folder("save-") as folder, group_of_one():
        yield (
            nn.parallel.DistributedDataParallel(small_model()),
            folder / "model.pt",
        )


def small_model() -> nn.Module:
    """A model with parameters and buffers, 9 kB of them."""
    return nn.Sequential(nn.Linear(32, 64), nn.BatchNorm1d(64))


@contextlib.contextmanager
def playing(rank: int, answer: Any, path: Path) -> Iterator[Played]:
    """Let this process be rank `rank` of two for the code inside; nobody else is there.

    Its collectives return at once and are noted.  Names that the answer has imported
    (``from torch.distributed import barrier``) are replaced as well.
    """
    played = Played()

    def collective(name: str) -> Callable[..., None]:
        def call(*args: Any, **kwargs: Any) -> None:
            played.calls.append(name)
            played.found.append(path.read_bytes() if path.exists() else None)

        return call

    stand_in: dict[str, Callable[..., Any]] = {n: collective(n) for n in ALIKE}
    stand_in |= {"get_rank": lambda group=None: rank}
    stand_in |= {"get_world_size": lambda group=None: RANKS}
    numbers = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": RANKS}
    with contextlib.ExitStack() as undo:
        undo.enter_context(
            mock.patch.dict(os.environ, {name: str(n) for name, n in numbers.items()})
        )
        places = [vars(dist), *names_of(answer)]
        for name, instead in stand_in.items():
            real = getattr(dist, name)
            for place in places:
                own = {held: instead for held, value in place.items() if value is real}
                undo.enter_context(mock.patch.dict(place, own))
        yield played


def names_of(answer: Any) -> list[dict[str, Any]]:
    """The modules that the answer's methods, its parents' too, look names up in."""
    modules = [sys.modules.get(kind.__module__) for kind in answer.__mro__]
    return [vars(m) for m in modules if m is not None and m.__name__ != "builtins"]


@contextlib.contextmanager
def killed_while_saving() -> Iterator[None]:
    """The next `torch.save` writes the half of it and the process is gone."""
    whole_save = torch.save

    def half(state: Any, file: Any, *args: Any, **kwargs: Any) -> None:
        if hasattr(file, "write"):
            file.write(b"PK half of it")
        else:
            whole_save(state, file)
            content = Path(file).read_bytes()
            Path(file).write_bytes(content[: len(content) // 2])
        raise Killed

    with mock.patch.object(torch, "save", half), contextlib.suppress(Killed):
        yield


@contextlib.contextmanager
def saved_on_gpu() -> Iterator[None]:
    """`torch.save` notes the device as it does for weights on the first GPU."""
    with mock.patch.object(torch.serialization, "location_tag", return_value="cuda:0"):
        yield


@contextlib.contextmanager
def no_gpu() -> Iterator[None]:
    with mock.patch.object(torch.cuda, "is_available", return_value=False):
        yield
