"""Watches a loader until it is ended from outside: a program for test_loading_ends.py.

Arguments: a folder for notes, the phase in which to stay, the start method.
"""

import json
import signal
import sys
import time
from pathlib import Path

import torch
from torch.utils.data import DataLoader, Dataset, Sampler

from labkit.launch.children import child_pids
from labkit.probe.loaders import watch_loader


class Staying(Dataset):
    """Tensors; one of them, in the phase to stay in, takes longer than any test."""

    def __init__(self, folder, phase):
        self.folder, self.phase = Path(folder), phase

    def __len__(self):
        return 8

    def __getitem__(self, index):
        trained = (self.folder / "trained").exists()
        if (self.phase == "wait" and index == 5) or (
            self.phase == "separate" and trained
        ):
            (self.folder / "here").touch()
            time.sleep(300)
        return torch.zeros(5000) + index


class Order(Sampler):
    """The samples in order; the first one comes late in the phase "start"."""

    def __init__(self, folder, phase):
        self.folder, self.phase = Path(folder), phase

    def __len__(self):
        return 8

    def __iter__(self):
        if self.phase == "start":
            (self.folder / "here").touch()
            time.sleep(1)
        return iter(range(8))


def main(folder, phase, method):
    # a shell's background job would ignore it
    signal.signal(signal.SIGINT, signal.default_int_handler)
    loader = DataLoader(
        Staying(folder, phase),
        batch_size=2,
        sampler=Order(folder, phase),
        num_workers=2,
        multiprocessing_context=method,
    )
    count = []

    def step(batch):
        count.append(len(batch))
        if len(count) == 4:
            (Path(folder) / "trained").touch()

    try:
        watch_loader(loader, step)
    except KeyboardInterrupt:
        kept = signal.getsignal(signal.SIGINT) is signal.default_int_handler
        print(json.dumps({"children": sorted(child_pids()), "handler": kept}))


if __name__ == "__main__":
    main(*sys.argv[1:])
