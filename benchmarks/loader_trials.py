"""What `watch_loader` adds to an epoch over the photos: its cost over a plain loop's.

`python -m benchmarks.loader_trials` takes about two minutes on a machine that does
nothing else. On a busy one the time on the clock says little; the processor time, of
this process and its workers, still does.
"""

import argparse
import resource
import time
from collections.abc import Callable
from math import comb
from pathlib import Path
from statistics import median

import numpy as np
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset

from labkit.lesson.data import data_path
from labkit.probe.loaders import watch_loader

REPEATS = 4  # of each photo in an epoch: 144 items


class Photos(Dataset[torch.Tensor]):
    """The photos as tensors of (3, 224, 224) float32: decoded, resized, scaled."""

    def __init__(self, repeats: int) -> None:
        self.paths: list[Path] = sorted(data_path("photos").glob("*.jpg")) * repeats

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> torch.Tensor:
        with Image.open(self.paths[index]) as image:
            pixels = np.asarray(image.convert("RGB").resize((224, 224)))
        return torch.from_numpy(pixels.copy()).permute(2, 0, 1).float() / 255


def plain(loader: DataLoader[torch.Tensor]) -> None:
    """Go through one epoch with nothing done to its batches."""
    for _ in loader:
        continue


def watched(loader: DataLoader[torch.Tensor]) -> None:
    """Go through one epoch under `watch_loader`, without its separate pass."""
    watch_loader(loader, batches=None, twice=False)


Loader = DataLoader[torch.Tensor]


def cost(epoch: Callable[[Loader], None], loader: Loader) -> tuple[float, float]:
    """Return the seconds of an epoch: on the clock, and of all processors together.

    The second is user and system time of this process and of its ended children.
    """
    start, before = time.perf_counter(), _processor_s()
    epoch(loader)
    return time.perf_counter() - start, _processor_s() - before


def _processor_s() -> float:
    used = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in used)


def interval(ratios: list[float]) -> tuple[float, float]:
    """Return an interval that holds the median of what was sampled in 95 % of cases.

    It goes from one ordered value to another: how many values lie below the median is
    binomial with one half (the sign test's interval).
    """
    ordered, number = sorted(ratios), len(ratios)
    left_out = 0
    while 2 * _at_most(left_out + 1, number) <= 0.05:
        left_out += 1
    return ordered[left_out], ordered[number - 1 - left_out]


def _at_most(heads: int, tosses: int) -> float:
    return sum(comb(tosses, number) for number in range(heads + 1)) / 2**tosses


def main() -> None:
    """Print, for each number of workers, the median ratios of interleaved epochs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15, help="pairs of epochs")
    parser.add_argument(
        "--workers", type=int, nargs="*", default=[0, 1, 2], help="numbers of workers"
    )
    parser.add_argument(
        "--repeats", type=int, default=REPEATS, help="of each photo in an epoch"
    )
    asked = parser.parse_args()
    rounds = asked.rounds
    torch.set_num_threads(1)
    for workers in asked.workers:
        loader = DataLoader(
            Photos(asked.repeats), batch_size=16, shuffle=True, num_workers=workers
        )
        plain(loader)  # the files are in the system's cache from here on
        watched(loader)
        pairs = []
        for turn in range(rounds):
            # who goes first takes turns: a machine slows down and speeds up
            if turn % 2:
                alone, seen = cost(plain, loader), cost(watched, loader)
            else:
                seen, alone = cost(watched, loader), cost(plain, loader)
            pairs.append((seen, alone))
        print(f"{workers} workers, watched over plain, {rounds} pairs of epochs:")
        for place, name in enumerate(("clock", "processors")):
            ratios = [seen[place] / alone[place] for seen, alone in pairs]
            low, high = interval(ratios)
            spent = median(alone[place] for _, alone in pairs)
            print(
                f"  {name:10} {spent:.2f} s plain, median ratio {median(ratios):.3f} "
                f"(95 %: {low:.3f} to {high:.3f})",
                flush=True,
            )


if __name__ == "__main__":
    main()
