"""Faults of DistributedDataParallel that raise nothing, or late: with real ranks.

The kinds of three reported faults and their fixed twins: a sampler that is never told
the epoch, a forward that goes around the wrapper, a branch that takes no part in the
loss.  One launch runs them all; each test reads what its ranks reported.
"""

import pytest
import torch

from labkit.launch.rank_result import Ranks
from labkit.launch.rank_run import launch

FAULTS = """
import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler

import labkit as lk

dist.init_process_group("gloo")
rank = dist.get_rank()


def orders(tell, **options):
    data = list(range(33))
    sampler = DistributedSampler(data, **options)
    loader = DataLoader(data, batch_size=4, sampler=sampler)
    lists = []
    for epoch in range(3):
        if tell:
            sampler.set_epoch(epoch)
        lists.append(torch.cat(list(loader)).tolist())
    return lists


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.used, self.aux = nn.Linear(2, 1), nn.Linear(2, 1)

    def forward(self, x, share=1.0):
        return self.used(x) + (share * self.aux(x) if share is not None else 0)

    def loss(self, x):
        return self(x).pow(2).sum()


def trained(forward, **options):
    torch.manual_seed(0)
    ddp = DDP(Model(), **options)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.05)
    for _ in range(3):
        optimizer.zero_grad()
        forward(ddp, torch.ones(1, 2) * (rank + 1)).backward()
        optimizer.step()
    return ddp.module.used.weight


def in_words(forward, **options):
    try:
        trained(forward, **options)
    except RuntimeError as error:
        return str(error)
    return "finished"


lk.report(
    told=orders(True),
    untold=orders(False),
    untold_drop_last=orders(False, drop_last=True, seed=5),
    by_module=trained(lambda ddp, x: ddp.module(x).pow(2).sum()),
    by_method=trained(lambda ddp, x: ddp.module.loss(x)),
    by_wrapper=trained(lambda ddp, x: ddp(x).pow(2).sum()),
)
without = lambda ddp, x: ddp(x, share=None).pow(2).sum()
lk.report(
    searched=in_words(without, find_unused_parameters=True),
    zero=in_words(lambda ddp, x: ddp(x, share=0.0).pow(2).sum()),
    unused=in_words(without),
)
dist.destroy_process_group()
"""


@pytest.fixture(scope="module")
def ranks() -> Ranks:
    found = launch(FAULTS, nproc=2, timeout=100)
    assert found.problem == "", found.output
    return found


@pytest.mark.parametrize("name", ["untold", "untold_drop_last"])
def test_a_sampler_that_is_not_told_repeats_its_epoch(ranks, name):
    for values in ranks:
        first, second, third = values[name]
        assert first == second == third
    assert set(ranks[0][name][0]) != set(ranks[1][name][0])


def test_a_sampler_that_is_told_shuffles_and_shares(ranks):
    for epoch in range(3):
        shares = [values["told"][epoch] for values in ranks]
        assert set(shares[0] + shares[1]) == set(range(33))
    for values in ranks:
        first, second, third = values["told"]
        assert first != second != third != first


@pytest.mark.parametrize("name", ["by_module", "by_method"])
def test_around_the_wrapper_the_ranks_drift_apart(ranks, name):
    assert (ranks[0][name] - ranks[1][name]).abs().max() > 0.01


def test_through_the_wrapper_they_stay_equal(ranks):
    assert torch.equal(ranks[0]["by_wrapper"], ranks[1]["by_wrapper"])


def test_an_unused_branch_is_an_error_in_the_second_step(ranks):
    for values in ranks:
        assert "finished reduction in the prior iteration" in values["unused"]


@pytest.mark.parametrize("name", ["searched", "zero"])
def test_a_branch_that_is_searched_for_or_counts_zero_is_none(ranks, name):
    assert [values[name] for values in ranks] == ["finished", "finished"]
