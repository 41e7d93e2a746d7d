"""Exercise 6.3-save on real ranks: the part that each of them runs, and the launch."""

import importlib.util
import sys
import time
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from labkit.chapters.ch06.save_stage import RANKS, small_model
from labkit.launch.folders import own_folder
from labkit.launch.rank_result import Ranks
from labkit.launch.rank_run import launch
from labkit.launch.report import report
from labkit.lesson.answer_source import NoSource, source_of
from labkit.lesson.torn_write import tear_writes

TIMEOUT = 60.0  # seconds for the launch
PATIENCE = timedelta(seconds=30)  # how long a rank waits for the others
SLOW = 0.5  # seconds that rank 0 needs longer than the others before it writes
NAME = "model.pt"


@dataclass
class Tried:
    """What came of a launch: the ranks, and what is left at the path, if it loads."""

    ranks: Ranks
    left: dict[str, torch.Tensor] | None


def try_on_ranks(answer: Any) -> Tried:
    """Launch two ranks that save and load with `answer`, the last time torn by a kill.

    AssertionError where the class cannot be brought there.
    """
    try:
        source = source_of(answer)
    except NoSource as why:
        raise AssertionError(f"{why}") from None
    with own_folder("save-") as folder:
        (folder / "answer.py").write_text(source, encoding="utf-8")
        script = f"from {__name__} import main\nmain({str(folder)!r})\n"
        ranks = launch(script, nproc=RANKS, timeout=TIMEOUT)
        return Tried(ranks, loaded(folder / NAME))


def loaded(path: Path) -> dict[str, torch.Tensor] | None:
    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except Exception:  # missing, cut off, or no checkpoint at all
        return None


def main(place: str) -> None:
    """Save, load at once, and compare, twice; then die in the middle of a third save."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=PATIENCE)
    rank, path = dist.get_rank(), Path(place, NAME)
    answer = answer_in(path.parent)()
    torch.manual_seed(rank)
    ddp = DistributedDataParallel(small_model())
    if rank == 0:
        slow_down()
    for round_ in ("first", "second"):
        step(ddp)
        answer.save(ddp, path)
        found = answer.load(small_model(), path, torch.device("cpu"))
        report(**{round_: alike(found, ddp.module), "saved": weights(ddp.module)})
    step(ddp)
    if rank == 0:
        tear_writes(path.stat().st_size // 2)
    answer.save(ddp, path)


def answer_in(folder: Path) -> Any:
    """The learner's class, from the file that the check has written."""
    spec = importlib.util.spec_from_file_location("answer", folder / "answer.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["answer"] = module
    spec.loader.exec_module(module)
    return getattr(module, module.ANSWER)


def step(ddp: nn.Module) -> None:
    """Change the weights, on all ranks alike."""
    with torch.no_grad():
        for weight in ddp.parameters():
            weight.add_(1)


def slow_down() -> None:
    """Let each save of this rank begin late: who does not wait for it is too early."""
    save = torch.save

    def late(*args: Any, **kwargs: Any) -> None:
        time.sleep(SLOW)
        save(*args, **kwargs)

    torch.save = late


def weights(model: nn.Module) -> dict[str, torch.Tensor]:
    return {name: value.clone() for name, value in model.state_dict().items()}


def alike(one: Any, other: nn.Module) -> bool:
    """Whether all of `other` is in `one`, value by value, and it is on the CPU."""
    theirs = one.state_dict()
    return all(
        name in theirs
        and theirs[name].device.type == "cpu"
        and torch.equal(theirs[name], value)
        for name, value in other.state_dict().items()
    )
