"""The timetable that page 04 predicts is the one that torch's own loader follows."""

import multiprocessing
from collections.abc import Iterator
from itertools import pairwise

import pytest
from torch.utils.data import DataLoader

from labkit.chapters.ch04.explorers_42 import COSTS, UNEVEN, setting, told
from labkit.chapters.ch04.loader_model import (
    Setting,
    predict,
    ready,
    share_waiting,
)
from labkit.chapters.ch04.loader_run import SleepItems, measure, start_method
from labkit.probe.loader_result import BatchTimes


def spans(rows: tuple[BatchTimes, ...], first: str, last: str) -> list[tuple]:
    return [(getattr(row, first), getattr(row, last)) for row in rows]


# --- cases that can be followed by hand ------------------------------------------------


def test_without_workers_reading_and_computing_take_turns():
    rows = predict(Setting(0, 2, (4.0, 2.0), step=1.0))
    assert spans(rows, "began", "ended") == [(0, 4), (5, 7)]
    assert spans(rows, "came", "done") == [(4, 5), (7, 8)]
    assert share_waiting(rows) == pytest.approx(2 / 3)


def test_a_slow_worker_sets_the_pace():
    # made at 4, 8, 12; the step of 1 waits 3 for each after the first
    rows = predict(Setting(1, 2, (4.0, 4.0, 4.0), step=1.0))
    assert [row.came for row in rows] == [4, 8, 12]
    assert share_waiting(rows) == pytest.approx(3 / 4)


def test_two_workers_halve_the_wait():
    # batches 0 and 1 are ready at 4, 2 and 3 at 8
    rows = predict(Setting(2, 1, (4.0,) * 4, step=1.0))
    assert [row.worker for row in rows] == [0, 1, 0, 1]
    assert [row.came for row in rows] == [4, 5, 8, 9]
    assert spans(rows, "began", "ended") == [(0, 4), (0, 4), (4, 8), (5, 9)]


def test_batches_come_in_order_so_one_slow_batch_holds_up_those_behind_it():
    # batch 1 is ready at 1 and waits for batch 0, which takes 9
    rows = predict(Setting(2, 2, (9.0, 1.0, 1.0), step=1.0))
    assert [row.ended for row in rows] == [9, 1, 10]
    assert [row.came for row in rows] == [9, 10, 11]


def test_a_worker_with_nothing_left_to_make_waits_for_the_trainer():
    # one batch ahead: batch 1 is handed out when batch 0 is taken, at 1
    rows = predict(Setting(1, 1, (1.0,) * 3, step=10.0))
    assert [row.began for row in rows] == [0, 1, 11]
    assert [row.came for row in rows] == [1, 11, 21]


def test_the_ready_batches_are_counted():
    rows = predict(Setting(2, 2, (1.0,) * 6, step=10.0))
    steps = ready(rows)
    assert max(count for _, count in steps) == 4  # handed out at 0, none taken till 11
    assert steps[-1][1] == 0
    assert ready(predict(Setting(0, 2, (1.0,), step=1.0)))[-1] == (1.0, 0)


def test_times_that_are_equal_but_for_rounding_are_one():
    # 0.1 + 0.2 is not 0.3: batch 1 is taken when it is ready, and never lies there
    rows = (BatchTimes(0, 0.0, 0.3, 0.0, 0.1 + 0.2, 1.0),)
    assert ready(rows) == [(0.0, 0), (0.3, 0)]


def test_no_time_at_all_is_no_waiting():
    assert share_waiting(predict(Setting(0, 2, (0.0, 0.0), step=0.0))) == 0


def test_prefetch_helps_against_uneven_items_only():
    def share(item: str, prefetch: int) -> float:
        return share_waiting(predict(setting(2, item, prefetch, 10)))

    assert share(UNEVEN, 1) > 0.2 > share(UNEVEN, 4)
    alike = [item for item in COSTS if item != UNEVEN]
    assert all(share(item, 1) == share(item, 4) for item in alike)


# --- the real loader, by counts ---------------------------------------------------------


class Counted:
    """A sampler that notes how many indexes were drawn from it."""

    def __init__(self, size: int) -> None:
        self.size, self.drawn = size, 0

    def __iter__(self) -> Iterator[int]:
        for index in range(self.size):
            self.drawn += 1
            yield index

    def __len__(self) -> int:
        return self.size


@pytest.mark.filterwarnings("ignore:This DataLoader will create")
@pytest.mark.parametrize(("workers", "prefetch"), [(1, 1), (1, 3), (2, 1), (3, 2)])
def test_the_real_loader_hands_out_as_many_batches_as_the_model(workers, prefetch):
    size = 12
    sampler = Counted(size)
    loader = DataLoader(
        SleepItems((0.0,) * size),
        batch_size=1,
        sampler=sampler,
        num_workers=workers,
        prefetch_factor=prefetch,
        multiprocessing_context=start_method(),
        timeout=60,
    )
    ahead = Setting(workers, prefetch, (), 0.0).ahead
    iterator = iter(loader)
    assert sampler.drawn == ahead  # before any is asked for
    for taken, batch in enumerate(iterator, start=1):
        assert batch.tolist() == [taken - 1]
        assert sampler.drawn == min(ahead + taken, size)


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_a_real_epoch_keeps_the_order_of_the_model(workers):
    epoch = Setting(workers, 2, (0.03, 0.0, 0.0, 0.0, 0.02, 0.0, 0.0), 0.001)
    rows = measure(epoch).rows
    assert [row.worker for row in rows] == [row.worker for row in predict(epoch)]
    for before, after in pairwise(rows):
        assert before.came <= before.done <= after.asked <= after.came
    for row in rows:
        assert row.began <= row.ended <= row.came
    for number, row in enumerate(rows[epoch.ahead :] if workers else ()):
        # handed out only when the batch `ahead` places before it was taken; the record
        # of taking is written a moment after the handing out
        assert row.began >= rows[number].asked
    # one more is handed out a moment before the taking of a batch is written down
    assert max(count for _, count in ready(rows)) <= epoch.ahead + 1


def test_a_real_epoch_leaves_no_process():
    before = {child.pid for child in multiprocessing.active_children()}
    measure(Setting(2, 2, (0.001,) * 5, 0.0005))
    after = {child.pid for child in multiprocessing.active_children()}
    assert after <= before


def test_waiting_is_never_shorter_than_the_items_make_it():
    """Sleeping takes at least its time: this holds on the busiest machine."""
    epoch = Setting(1, 2, (0.02,) * 6, 0.001)
    rows = measure(epoch).rows
    assert all(row.ended - row.began >= 0.019 for row in rows)
    assert rows[-1].came >= 6 * 0.019


# --- what is said about it ----------------------------------------------------------------


def test_the_sentence_tells_both_shares_and_on_which_side_of_the_rule_they_are():
    epoch = setting(1, "20 ms", 2, 10)
    assert "49 % of its time, and 50 % by the model, both above" in told(
        epoch, "20 ms", 0.49, 0.5
    )
    assert "both within" in told(epoch, "20 ms", 0.1, 0.2)
    assert "one above and one within" in told(epoch, "20 ms", 0.3, 0.1)
    assert told(setting(0, "8 ms", 2, 10), "8 ms", 0.4, 0.4).startswith(
        "Without workers"
    )
