"""The epochs that the explorer of part 4.3 draws are real batches of the real names."""

import itertools
from collections import Counter

import pytest
import torch
from torch.nn.utils.rnn import pad_sequence

from labkit.chapters.ch04.explorers_43 import told
from labkit.chapters.ch04.padding_epochs import (
    BUCKETS,
    ORDERS,
    SHUFFLED,
    SIZES,
    SORTED,
    Epoch,
    epoch,
    lengths,
    spread,
)

SOME = list(itertools.product((8, 32, 256), ORDERS, (1, 5, 20)))


@pytest.mark.parametrize(("size", "order", "width"), SOME)
def test_every_name_comes_once(size, order, width):
    shown = epoch(size, order, width)
    drawn = Counter(length for batch in shown.batches for length in batch)
    assert drawn == Counter(lengths())
    assert all(0 < len(batch) <= size for batch in shown.batches)


@pytest.mark.parametrize(("size", "order", "width"), SOME)
def test_the_wasted_share_is_what_pad_sequence_makes(size, order, width):
    shown = epoch(size, order, width)
    pads = places = 0
    for batch in shown.batches:
        rows = [torch.ones(length) for length in batch]
        padded = pad_sequence(rows, batch_first=True, padding_value=0.0)
        places += padded.numel()
        pads += int((padded == 0).sum())
    assert shown.places == places
    assert shown.wasted == pytest.approx(pads / places)


@pytest.mark.parametrize("width", [1, 3, 20])
def test_a_batch_comes_from_one_bucket(width):
    shown = epoch(16, BUCKETS, width)
    homes = [{(length - 1) // width for length in batch} for batch in shown.batches]
    assert all(len(home) == 1 for home in homes)
    assert shown.buckets == len(set.union(*homes))
    assert len(shown.batches) - shown.full <= shown.buckets


@pytest.mark.parametrize("size", SIZES)
def test_buckets_lie_between_no_waste_and_random_order(size):
    waste = [epoch(size, BUCKETS, width).wasted for width in (1, 5, 20)]
    assert waste[0] == 0
    assert waste == sorted(waste)
    assert waste[-1] < epoch(size, SHUFFLED).wasted


def test_sorted_is_not_always_the_least():
    assert epoch(32, SORTED).wasted < epoch(32, BUCKETS, 5).wasted
    assert epoch(256, SORTED).wasted > epoch(256, BUCKETS, 5).wasted


@pytest.mark.parametrize(("size", "order", "width"), SOME)
def test_the_batches_that_are_drawn_fit_and_reach_from_end_to_end(size, order, width):
    shown = epoch(size, order, width)
    chosen = spread(shown, room=260, gap=4)
    assert sum(max(batch) + 4 for batch in chosen) - 4 <= 260
    assert chosen[0] is shown.batches[0]
    assert chosen[-1] is shown.batches[-1]
    assert len(set(map(id, chosen))) == len(chosen)


def test_one_batch_is_drawn_where_two_do_not_fit():
    wide = Epoch(size=1, batches=((9,), (9,)))
    assert spread(wide, room=12, gap=4) == ((9,),)


def test_the_sentence_counts_full_batches_and_pads():
    assert "2 batches, all of them full" in told(
        Epoch(2, ((1, 2), (3, 3))), SHUFFLED, 1
    )
    assert "1 of them not full" in told(Epoch(2, ((1, 2), (3,))), SHUFFLED, 1)
    none = told(Epoch(3, ((2, 2), (4,)), buckets=2), BUCKETS, 2)
    assert "from 2 buckets of 2 lengths each" in none
    assert "none of them full" in none
    assert "none of these are pads" in none
    assert "8 places, and 25 % of these" in told(Epoch(2, ((2, 4),)), SORTED, 1)
