"""What `watch_loader` adds to an epoch over the photos: its time over a plain loop's.

Run alone: `python -m benchmarks.loader_trials` (about a minute).
"""

import time
from pathlib import Path
from statistics import median

import numpy as np
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset

from labkit.lesson.data import data_path
from labkit.probe.loaders import watch_loader

ROUNDS = 9
REPEATS = 8  # of each photo in an epoch: 288 items


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


def plain(loader: DataLoader[torch.Tensor]) -> float:
    """Return the seconds of one epoch with nothing done to its batches."""
    start = time.perf_counter()
    iterator = iter(loader)
    for _ in iterator:
        continue
    return time.perf_counter() - start


def main() -> None:
    """Print, for each number of workers, the median ratio of interleaved epochs."""
    torch.set_num_threads(1)
    for workers in (0, 1, 2):
        loader = DataLoader(
            Photos(REPEATS), batch_size=16, shuffle=True, num_workers=workers
        )
        plain(loader)  # the files are in the system's cache from here on
        pairs = []
        for turn in range(ROUNDS):
            # who goes first takes turns: a machine slows down and speeds up
            if turn % 2:
                alone = plain(loader)
                seen = watch_loader(loader, batches=None, twice=False).total_s
            else:
                seen = watch_loader(loader, batches=None, twice=False).total_s
                alone = plain(loader)
            pairs.append((seen, alone))
        ratios = sorted(seen / alone for seen, alone in pairs)
        best = min(seen for seen, _ in pairs) / min(alone for _, alone in pairs)
        print(
            f"{workers} workers: epoch {median(a for _, a in pairs):.2f} s, watched over "
            f"plain: median {median(ratios):.3f} ({ratios[0]:.3f} to {ratios[-1]:.3f}), "
            f"best over best {best:.3f}"
        )


if __name__ == "__main__":
    main()
