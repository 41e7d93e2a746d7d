"""Exercise 6.3-save: the stage that plays a rank, and what the real ranks find."""

from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from torch.distributed import barrier, get_rank

from labkit.chapters.ch06 import save_answers as answers
from labkit.chapters.ch06.save_checks import judge, save_as
from labkit.chapters.ch06.save_ranks import Tried, try_on_ranks
from labkit.chapters.ch06.save_stage import group_of_one, playing, small_model, stage
from labkit.chapters.ch06.stuck import Stuck
from labkit.launch.folders import LOCK
from labkit.launch.rank_output import lines
from labkit.launch.rank_result import Ranks
from labkit.launch.rank_run import launch

FIRST = {"first": True, "second": True}


def ranks(*reported, problem="", output=("", "")):
    return Ranks(reported, output, problem, 1.0)


class ByName:
    """Calls collectives by names that were imported."""

    def save(self, ddp, path):
        path.write_text(f"rank {get_rank()}")
        barrier()
        dist.all_reduce(torch.ones(1))


# --- the stage


def test_a_rank_is_played_also_for_names_that_were_imported():
    real = dist.barrier
    with stage() as (ddp, path), playing(1, ByName, path) as played:
        ByName().save(ddp, path)
        assert path.read_text() == "rank 1"
    assert played.calls == ["barrier", "all_reduce"]
    assert played.found == [b"rank 1", b"rank 1"]
    assert dist.barrier is barrier is real
    assert not dist.is_initialized()


def test_the_group_of_the_page_is_used_and_kept():
    store = dist.HashStore()
    dist.init_process_group("gloo", store=store, rank=0, world_size=1)
    try:
        mine = dist.group.WORLD
        with group_of_one():
            assert dist.group.WORLD is mine
        assert dist.is_initialized()
    finally:
        dist.destroy_process_group()


def test_the_stage_leaves_nothing():
    with stage() as (ddp, path):
        save_as(0, answers.OneFile, ddp, path)
        assert {file.name for file in path.parent.iterdir()} == {path.name, LOCK}
    assert not path.parent.exists()


# --- the real ranks


def test_what_real_ranks_report_is_judged():
    state = small_model().state_dict()
    told = {**FIRST, "saved": state}
    judge(Tried(ranks(told, told, problem="rank 0 was ended by SIGXFSZ"), state))
    cases = {
        "rank 1 did not get through the first": Tried(ranks(told, {}), state),
        "other weights in the second round": Tried(
            ranks(told, {**told, "second": False}), state
        ),
        "can no longer be read": Tried(ranks(told, told), None),
        "is not the second one": Tried(
            ranks(told, told), {name: value + 1 for name, value in state.items()}
        ),
    }
    for message, tried in cases.items():
        with pytest.raises(AssertionError, match=message):
            judge(tried)


def test_real_ranks_find_out_who_does_not_wait():
    with pytest.raises(AssertionError, match=r"FileNotFoundError|got other weights"):
        judge(try_on_ranks(answers.NobodyWaits))


# --- trap 6.3.7


def test_ranks_that_an_alarm_has_ended_are_stuck():
    alarm = "calls barrier\nTimeout (0:00:04)!\nThread (most recent call first):"
    seen = Stuck().look(lambda: ranks({}, {}, problem="rank 0 …", output=("", alarm)))
    assert seen.shown
    assert seen.observed == "not finished 4 s after all ranks had met"
    late = Stuck().look(lambda: ranks({}, {}, problem="not finished after 8 s"))
    assert late.shown


def test_ranks_that_end_are_not_stuck():
    assert Stuck().look(lambda: ranks({}, {})).healthy
    died = Stuck().look(lambda: ranks({}, {}, problem="rank 1 ended with exit code 1"))
    assert died.failed
    assert not died.shown
    other = Stuck().look(lambda: "no ranks")
    assert other.failed


def test_torch_compares_the_calls_if_it_is_asked_to():
    script = """
import os
os.environ["TORCH_DISTRIBUTED_DEBUG"] = "DETAIL"
import labkit as lk
import torch
import torch.distributed as dist
dist.init_process_group("gloo")
try:
    if dist.get_rank() == 0:
        dist.all_reduce(torch.ones(1))
    dist.barrier()
except RuntimeError as error:
    lk.report(error=str(error))
"""
    found = launch(script, timeout=60)
    assert found.problem == ""
    for rank in found:
        assert rank["error"].startswith(
            "Detected mismatch between collectives on ranks"
        )


def test_places_and_threads_that_vary_are_left_out(tmp_path: Path):
    place = tmp_path / "run" / "attempt_0" / "0"
    place.mkdir(parents=True)
    (place / "stderr.log").write_text(
        "Thread 0x00007f30865dbb80 (most recent call first):\n"
        '  File "/tmp/labkit-cells-x1_y/logs.py", line 9 in log\n'
        f'  File "{tmp_path}/ranks.py", line 13 in <module>\n'
    )
    assert lines(tmp_path, 0, "stderr.log", tmp_path / "ranks.py") == [
        "Thread (most recent call first):",
        '  File "logs.py", line 9 in log',
        '  File "ranks.py", line 13 in <module>',
    ]
