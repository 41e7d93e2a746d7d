"""The worker that exercise 4.2 plays in one process draws what real workers draw."""

import copy
import random

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, get_worker_info

from labkit.chapters.ch04 import worker_answers as answers
from labkit.chapters.ch04.worker_life import NAMES, WORKERS, Augmented, as_worker, epoch

METHODS = torch.multiprocessing.get_all_start_methods()
CASES = [
    (answers.seed_worker, METHODS[0]),
    (answers.by_the_id_only, METHODS[0]),
    (answers.by_initial_seed, METHODS[0]),
    *(
        pytest.param(answers.seed_worker, method, marks=pytest.mark.slow)
        for method in METHODS[1:]
    ),
]


def real_epoch(answer, method):
    loader = DataLoader(
        Augmented(),
        batch_size=None,
        num_workers=WORKERS,
        worker_init_fn=answer,
        multiprocessing_context=method,
    )
    items = list(loader)
    workers = [items[worker::WORKERS] for worker in range(WORKERS)]
    return [
        dict(zip(NAMES, map(list, zip(*worker, strict=True)), strict=True))
        for worker in workers
    ]


@pytest.mark.parametrize(("answer", "method"), CASES)
def test_it_draws_what_real_workers_draw(answer, method):
    torch.manual_seed(0)
    real = [real_epoch(answer, method) for _ in range(2)]
    torch.manual_seed(0)
    assert [epoch(answer) for _ in range(2)] == real


def test_what_the_caller_holds_is_left_alone():
    dataset = Augmented()
    before = copy.deepcopy(dataset)
    states = random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state()
    with as_worker(copy.deepcopy(dataset), seed=5, id=1):
        answers.seed_worker(1)
        assert get_worker_info().id == 1
        assert get_worker_info().seed == torch.initial_seed() == 5
        random.random(), np.random.random(), torch.rand(())
    assert get_worker_info() is None
    assert random.getstate() == states[0]
    assert np.random.get_state()[1].tolist() == states[1]
    assert torch.equal(torch.get_rng_state(), states[2])
    assert dataset[0] == before[0]


def test_an_answer_that_raises_leaves_no_worker_behind():
    def raises(worker_id):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        epoch(raises)
    assert get_worker_info() is None
