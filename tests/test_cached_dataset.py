"""The bench of exercise 4.1 counts what real workers would do, however they start."""

from pathlib import Path

import pytest
import torch
from torch.utils.data import DataLoader

from labkit.chapters.ch04.cache_answers import CachedDataset, FilledOnDemand
from labkit.chapters.ch04.cache_bench import PHOTOS, Reader, in_workers, paths, photo

METHODS = torch.multiprocessing.get_all_start_methods()


class Noting:
    """A load function that notes each call in a file, from whichever process."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __call__(self, path: str) -> torch.Tensor:
        with self.file.open("a", encoding="utf-8") as notes:
            notes.write("x")
        return photo(path)

    @property
    def count(self) -> int:
        return self.file.stat().st_size


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("answer", [CachedDataset, FilledOnDemand])
def test_the_bench_counts_as_real_workers_do(answer, method, tmp_path):
    load, counted = Noting(tmp_path / "loads"), Reader()
    loader = DataLoader(
        answer(paths(), load),
        batch_size=None,
        num_workers=2,
        multiprocessing_context=method,
        timeout=60,
    )
    for _ in range(2):
        assert len(list(loader)) == PHOTOS
    in_workers(answer(paths(), counted), epochs=2)
    assert load.count == len(counted.asked)
    assert load.count == (PHOTOS if answer is CachedDataset else 2 * PHOTOS)
