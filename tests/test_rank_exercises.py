"""Chapter 06's exercises: how an answer comes to the ranks, and what ends there."""

from typing import Any

import pytest

from labkit.chapters.ch06 import ddp_answers, metric_answers, rank_check
from labkit.chapters.ch06.ddp_exercise import EXERCISE as DDP
from labkit.chapters.ch06.metric_exercise import EXERCISE as METRIC
from labkit.launch.cellmodule import run_module
from labkit.launch.rank_result import Ranks


def test_known_answers_share_a_launch():
    for exercise, module in ((DDP, ddp_answers), (METRIC, metric_answers)):
        known = {*(wrong.answer for wrong in exercise.wrong), *exercise.variants}
        alone = known - set(module.TOGETHER)
        assert alone <= {ddp_answers.OnlyRankZeroReduces}
        assert set(module.TOGETHER) <= known
        assert exercise.reference not in module.TOGETHER


@pytest.mark.parametrize(
    ("answer", "says"),
    [(print, "written with `def`"), (lambda model, data, step, path: None, "%%module")],
)
def test_what_cannot_be_sent_is_said(answer: Any, says: str, monkeypatch):
    if answer is not print:
        monkeypatch.setattr(answer, "__module__", "__main__")
    with pytest.raises(AssertionError, match=says):
        rank_check.noted(answer, "no.bench")


def test_one_launch_an_answer(monkeypatch):
    launches = []

    def launch(script: str, **options: Any) -> Ranks:
        launches.append(script)
        values = {"error": "", "got": len(launches)}
        return Ranks(({"reply": values},) * 2, ("", ""), "", 0.0)

    monkeypatch.setattr(rank_check, "launch", launch)
    made = [run_module("asked_twice", "def reply(): return 1").reply for _ in range(2)]
    found = [rank_check.noted(reply, "no.bench")[0]["got"] for reply in made * 2]
    assert found == [1, 2, 1, 2]
    assert "'asked_twice'" in launches[0]


def test_an_error_is_told_with_its_rank_and_line():
    source = """
import torch.distributed as dist

def global_accuracy(correct, n):
    if dist.get_rank() == 1:
        raise KeyError("no such count")
    return 0.5
"""
    module = run_module("raises_on_one", source)
    result = METRIC.run(module.global_accuracy)
    assert result.outcome == "failed"
    assert "rank 1 raised `KeyError`: 'no such count'" in result.says
    assert '(line 7: `raise KeyError("no such count")`)' in result.says


def test_a_rank_that_waits_alone_is_explained(monkeypatch):
    source = """
import torch.distributed as dist

def global_accuracy(correct, n):
    if dist.get_rank() == 0:
        dist.all_reduce(correct.sum())
    return 0.5
"""
    module = run_module("waits_alone", source)
    result = METRIC.run(module.global_accuracy)
    assert result.outcome == "failed"
    assert "a collective that not every rank comes to" in result.says
