"""The seven edits of exercise 6.2-ddp, each with a test of its own."""

import re
from collections.abc import Callable
from typing import Any

import torch

from labkit.chapters.ch06.ddp_bench import EPOCHS, GPU, IMAGES
from labkit.chapters.ch06.rank_check import Noted, noted

BENCH = "labkit.chapters.ch06.ddp_bench"
Answer = Callable[..., Any]


def ran(answer: Answer) -> Noted:
    return noted(answer, BENCH)


def group(answer: Answer) -> None:
    """edit 1, the process group"""
    everywhere = ran(answer)
    found = everywhere[0]
    assert found["inits"] == 1, (
        f"`init_process_group` was called {found['inits']} times: each rank calls it once, "
        "before anything else of `torch.distributed`"
    )
    on_gpus, without = (last(found[kind]["backends"]) for kind in ("gpu", "cpu"))
    assert without is None or "nccl" not in without, (
        f"on a machine without GPUs your script asks for the backend {without!r}, which "
        "needs one: let the device decide"
    )
    assert on_gpus is None or "nccl" in on_gpus, (
        f"on a machine with GPUs your script asks for the backend {on_gpus!r}: there "
        "`nccl` is the fast one, from GPU to GPU"
    )
    left = [rank for rank, values in enumerate(everywhere) if values["alive"]]
    assert not left, (
        f"the process group is still there when `train` returns on rank {left[0]}: "
        "`destroy_process_group` comes last, on every rank"
    )


def last(values: list[Any]) -> Any:
    return values[-1] if values else None


def device(answer: Answer) -> None:
    """edit 2, the device (tried as if there were GPUs)"""
    found = ran(answer)
    for rank, values in enumerate(found):
        place = last(values["gpu"]["places"])
        assert place != f"cuda:{rank}" or rank != 1, (
            f"on a second machine, RANK 1 and LOCAL_RANK {GPU} put the model on {place}: "
            "RANK counts over all machines, the GPUs of one are numbered by LOCAL_RANK"
        )
    place = last(found[1]["gpu"]["places"])
    assert place == f"cuda:{GPU}", (
        f"with GPUs and LOCAL_RANK={GPU} the model was put on {place or 'no device'}: it "
        f"belongs on cuda:{GPU}, where no other rank is"
    )


def wrapper(answer: Answer) -> None:
    """edit 3, the wrapper"""
    found = ran(answer)
    kinds = sorted({kind for values in found for kind in values["kinds"]})
    same = torch.allclose(found[0]["weights"], found[1]["weights"])
    apart = "" if same else ", and the two ranks ended with different weights"
    assert kinds, "`step` was never called"
    if kinds != ["DistributedDataParallel"] and found[0]["wrapped"]:
        raise AssertionError(
            f"the model is wrapped, and `step` was called with the {kinds[0]} inside it"
            f"{apart}: only a call of the wrapper synchronises the gradients"
        )
    assert kinds == ["DistributedDataParallel"], (
        f"`step` was called with a plain {kinds[0]}{apart}: it is DistributedDataParallel "
        "that synchronises the gradients"
    )
    assert same, "the two ranks ended with different weights"


def sampler(answer: Answer) -> None:
    """edit 4, the share of each rank"""
    found = ran(answer)
    counts = [len(values["seen"]) for values in found]
    assert counts[0] != EPOCHS * IMAGES, (
        f"each rank went through all {IMAGES} samples in each of the {EPOCHS} epochs: a "
        "DistributedSampler gives each its share"
    )
    share = EPOCHS * IMAGES // len(found)
    assert counts == [share] * len(found), (
        f"the ranks read {counts[0]} and {counts[1]} samples in {EPOCHS} epochs, and "
        f"their share is {share} each"
    )
    first = [epochs(values)[0] for values in found]
    seen = {index for part in first for index in part}
    assert len(seen) == IMAGES, (
        f"in an epoch both ranks together saw {len(seen)} of the {IMAGES} samples, some "
        "twice: the shares fit together only if all ranks shuffle with the same seed"
    )
    assert first[0] != sorted(first[0]), (
        "the samples come in the order of the data: `shuffle=True` has to go from the "
        "loader, and the sampler takes over (it shuffles by default)"
    )


def epochs(values: dict[str, Any]) -> list[list[int]]:
    """What the rank read, epoch by epoch."""
    size = len(values["seen"]) // EPOCHS
    return [values["seen"][n * size : (n + 1) * size] for n in range(EPOCHS)]


def order(answer: Answer) -> None:
    """edit 5, another order in each epoch"""
    each = epochs(ran(answer)[0])
    assert each[0] != each[1] or each[1] != each[2], (
        f"the order of the samples is the same in all {EPOCHS} epochs: who tells the "
        "sampler which epoch it is?"
    )
    assert len({tuple(part) for part in each}) == EPOCHS, (
        "two of the epochs have the same order: `set_epoch` needs another number each time"
    )


def printed(answer: Answer) -> None:
    """edit 6, the loss that is printed"""
    found = ran(answer)
    assert not found[1]["printed"].strip(), (
        f"rank 1 printed too, `{found[1]['printed'].strip().splitlines()[0]}`: one line an "
        "epoch is enough, from rank 0 (LOCAL_RANK is 0 on every machine, RANK only once)"
    )
    lines = [ln for ln in found[0]["printed"].splitlines() if ln.strip()]
    assert len(lines) == EPOCHS, (
        f"rank 0 printed {len(lines)} lines for {EPOCHS} epochs"
    )
    own, other = (means(values) for values in found)
    for epoch, line in enumerate(lines):
        numbers = re.findall(r"-?\d+\.\d+", line)
        assert numbers, f"rank 0 printed `{line}`, and a loss was expected"
        got, want = float(numbers[-1]), (own[epoch] + other[epoch]) / 2
        asked = f"the ranks' losses are {own[epoch]:.2f} and {other[epoch]:.2f}"
        assert abs(got - own[epoch]) > 0.02, (
            f"{asked}, and rank 0 printed {got}, its own: the mean over the ranks is "
            f"{want:.2f}"
        )
        assert abs(got - want) < 0.02, (
            f"{asked}, their mean is {want:.2f}, and rank 0 printed {got}"
        )


def means(values: dict[str, Any]) -> list[float]:
    """The mean loss of each epoch on one rank."""
    size = max(len(values["losses"]) // EPOCHS, 1)
    parts = [values["losses"][n * size : (n + 1) * size] for n in range(EPOCHS)]
    return [sum(part) / max(len(part), 1) for part in parts]


def file(answer: Answer) -> None:
    """edit 7, the file"""
    found = ran(answer)
    saves = [values["saves"] for values in found]
    assert saves[1] == 0, (
        "rank 1 wrote the file as well: two processes that write one file can leave it "
        "torn, so rank 0 writes alone (LOCAL_RANK is 0 on every machine, RANK only once)"
    )
    assert saves[0] == 1, f"rank 0 saved {saves[0]} times, and once was expected"
    names = found[0]["file"]
    assert not any(name.startswith("module.") for name in names), (
        f"the file has {names[0]}: that is the wrapper's name for it, and a plain model "
        "could not load it. Save the model inside"
    )
    assert names == found[0]["names"], f"the file holds {names}, no state of the model"
    assert found[1]["there"], (
        "rank 1 returned before the file was complete: it has to wait for rank 0"
    )
