"""Exercise 6.2-ddp in the ranks: what a learner's training does there is noted.

Before the training runs for once really, it is rehearsed up to the wrapper: as if there
were GPUs, and as if there were none, so that both branches are seen on any machine.
"""

import contextlib
import io
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

from labkit.chapters.ch06.group_stand_in import Group, Standing, standing_in
from labkit.chapters.ch06.rank_side import on_each

IMAGES, EPOCHS = 80, 3
GPU = 3  # LOCAL_RANK in the rehearsal on GPUs: the rank's number would be another
SLOW = 0.3  # seconds that writing the file takes


class Rehearsed(BaseException):
    """The rehearsal has come to the wrapper, or to the first step."""


class Data(torch.utils.data.Dataset[tuple[Tensor, Tensor]]):
    """Labelled points; it notes which ones are asked for."""

    def __init__(self) -> None:
        seeded = torch.Generator().manual_seed(1)
        self.x = torch.randn(IMAGES, 6, generator=seeded)
        self.y = self.x[:, :3].argmax(dim=1)
        self.seen: list[int] = []

    def __len__(self) -> int:
        return IMAGES

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        self.seen.append(int(index))
        return self.x[index], self.y[index]


def make_model() -> nn.Module:
    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))


def rehearse(train: Callable[..., Any], gpus: bool, folder: Path) -> dict[str, Any]:
    """The backend and the device that the training asks for, with GPUs or without."""
    group, places = Group(), list[str]()
    Standing.group = group
    current = [0]

    def place(module: nn.Module, *to: Any, **named: Any) -> nn.Module:
        where = [*to, *named.values()][0] if to or named else current[0]
        places.append(full(where, current[0]))
        return module

    def stop(*args: Any, **kwargs: Any) -> None:
        raise Rehearsed

    def choose(device: Any) -> None:
        whole = isinstance(device, int)
        current[0] = device if whole else torch.device(device).index or 0

    cuda = {
        "is_available": lambda: gpus,
        "device_count": lambda: 8 if gpus else 0,
        "set_device": choose,
        "current_device": lambda: current[0],
    }
    with contextlib.ExitStack() as stack:
        for name, value in cuda.items():
            stack.enter_context(mock.patch.object(torch.cuda, name, value))
        stack.enter_context(mock.patch.object(nn.Module, "to", place))
        stack.enter_context(mock.patch.object(nn.Module, "cuda", place))
        stack.enter_context(mock.patch.object(DDP, "__init__", stop))
        if gpus:
            stack.enter_context(mock.patch.dict(os.environ, LOCAL_RANK=str(GPU)))
        stack.enter_context(contextlib.redirect_stdout(io.StringIO()))
        # the real run, which follows, tells what it raises
        with contextlib.suppress(Rehearsed, Exception):
            train(make_model(), Data(), stop, folder / "rehearsed.pt")
    return {"backends": group.backends, "places": places}


def full(device: Any, current: int) -> str:
    """The device in words, with its index."""
    if isinstance(device, int):
        return f"cuda:{device}"
    try:
        found = torch.device(device)
    except (RuntimeError, TypeError):  # a dtype, or a tensor to be like
        return str(device)
    return f"cuda:{current}" if found == torch.device("cuda") else str(found)


def perform(train: Callable[..., Any], folder: Path) -> dict[str, Any]:
    """The training itself, and what it printed, read, computed and wrote."""
    torch.manual_seed(dist.get_rank())
    Standing.group = group = Group()
    data, model = Data(), make_model()
    path = folder / f"{train.__name__}.pt"
    said, losses, kinds = io.StringIO(), list[float](), set[str]()
    saves = wraps = 0
    really_save, really_wrap = torch.save, DDP.__init__

    def wrap(self: DDP, *args: Any, **kwargs: Any) -> None:
        nonlocal wraps
        wraps += 1
        really_wrap(self, *args, **kwargs)

    def step(model: nn.Module, optimizer: torch.optim.Optimizer, batch: Any) -> float:
        device = next(model.parameters()).device
        x, y = (part.to(device) for part in batch)
        kinds.add(type(model).__name__)
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        # so far apart that the mean over the ranks is no rank's own
        losses.append(loss.item() + 10 * dist.get_rank())
        return losses[-1]

    def save(*args: Any, **kwargs: Any) -> None:
        nonlocal saves
        saves += 1
        time.sleep(SLOW)
        really_save(*args, **kwargs)

    # each rank the first of a machine: an `if` on LOCAL_RANK is no `if` on the rank
    machines = {} if torch.cuda.is_available() else {"LOCAL_RANK": "0"}
    with (
        mock.patch.dict(os.environ, machines),
        mock.patch.object(torch, "save", save),
        mock.patch.object(DDP, "__init__", wrap),
        contextlib.redirect_stdout(said),
    ):
        train(model, data, step, path)
        there = path.exists()
    return {
        "inits": len(group.backends),
        "alive": group.alive,
        "kinds": sorted(kinds),
        "wrapped": wraps > 0,
        "seen": data.seen,
        "losses": losses,
        "printed": said.getvalue(),
        "saves": saves,
        "there": there,
        "weights": nn.utils.parameters_to_vector(model.parameters()),
        "file": contents(path) if dist.get_rank() == 0 else [],
        "names": list(model.state_dict()),
    }


def contents(path: Path) -> list[str]:
    """The names in the file that was saved."""
    if not path.exists():
        return []
    state = torch.load(path, map_location="cpu", weights_only=True)
    return list(state) if isinstance(state, dict) else [type(state).__name__]


def look(train: Callable[..., Any]) -> dict[str, Any]:
    """The two rehearsals, and then the training."""
    folder = Path(os.environ["TMPDIR"])
    with_gpus, without = (rehearse(train, gpus, folder) for gpus in (True, False))
    return {"gpu": with_gpus, "cpu": without, **perform(train, folder)}


def run(home: str, names: list[str]) -> None:
    """Look at each of these functions of the module `home`."""
    enough = torch.cuda.device_count() >= int(os.environ["LOCAL_WORLD_SIZE"])
    real = mock.patch.object(torch.cuda, "is_available", return_value=enough)
    with real, standing_in():
        on_each(home, names, look)
