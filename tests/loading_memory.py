"""Prints what `watch_loader` finds in many paths: a program for test_loading.py.

Large lists are freed before the workers are forked: these then write to memory that
they share with this process, however few of the paths they read.
"""

import json

import torch
from torch.utils.data import DataLoader, Dataset

from labkit.probe.loaders import watch_loader


class Images(Dataset):
    """Images that are made anew, and many paths of which one in so many is read."""

    def __init__(self, every):
        self.paths = [f"folder/of/photos/number_{i:08d}.jpg" for i in range(200_000)]
        self.every = every

    def __len__(self):
        return 64

    def __getitem__(self, index):
        # the first batch is what the others are compared with
        for place in range(0, len(self.paths) if index > 15 else 0, self.every):
            self.paths[place]
        return torch.ones(1 + index // 8, 256, 256)


def main():
    torch.set_num_threads(1)
    for size in (3_000_000, 2_500_000):
        # the allocator gives the second back to nobody, since the first was larger
        large = [None] * size
        del large
    found = {}
    for name, every in (("few", 20_000), ("all", 1)):
        loader = DataLoader(Images(every), batch_size=8, num_workers=2)
        report = watch_loader(loader, twice=False)
        found[name] = [finding.where for finding in report.findings]
    print(json.dumps(found))


if __name__ == "__main__":
    main()
