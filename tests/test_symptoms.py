"""Each symptom shows on broken code, does not on fixed code, and takes bad input well."""

import subprocess
import sys
import time
import warnings

import numpy as np
import pytest
import torch

from labkit.launch.children import child_pids
from labkit.lesson.costs import duration, heavier, size, slower
from labkit.lesson.evidence import LabError
from labkit.lesson.symptom import hangs, raises, same, silent, varies, warns


def test_raises_shows_the_matching_line_without_colours():
    def broken():
        raise RuntimeError("\x1b[31mfirst line\nthe size 3 is wrong\x1b[0m")

    seen = raises((ValueError, RuntimeError), "size \\d").look(broken)
    assert seen.shown
    assert seen.observed == "RuntimeError: the size 3 is wrong"


@pytest.mark.parametrize(
    "error", [RuntimeError("another thing"), KeyError("size 3")], ids=["text", "type"]
)
def test_another_error_is_neither_symptom_nor_cure(error):
    def other():
        raise error

    seen = raises(RuntimeError, "size").look(other)
    assert seen.shown is False
    assert seen.failed
    assert not seen.healthy


def test_raises_is_healthy_when_nothing_raises():
    seen = raises(RuntimeError, "size").look(lambda: [1, 2])
    assert seen.healthy
    assert seen.observed == "[1, 2]"


def test_warns_sees_a_warning_that_torch_gives_once_per_process():
    def broken():
        frozen = np.zeros(2)
        frozen.flags.writeable = False
        return torch.from_numpy(frozen)

    symptom = warns(UserWarning, "not writable")
    before = torch.is_warn_always_enabled()
    assert [symptom.look(broken).shown for _ in range(2)] == [True, True]
    assert torch.is_warn_always_enabled() == before
    assert symptom.look(lambda: 1).healthy
    assert not symptom.look(
        lambda: warnings.warn("not writable", DeprecationWarning, 1)
    ).shown


def test_silent_judges_the_result():
    symptom = silent(lambda t: t[0] == 100, "it changed")
    seen = symptom.look(lambda: torch.tensor([100, 2]))
    assert seen.shown
    assert seen.observed == "tensor([100, 2])"
    assert seen.measured == {"value_0": 100, "value_1": 2}
    assert symptom.look(lambda: torch.tensor([1, 2])).healthy


def test_a_result_that_the_predicate_cannot_judge_is_told():
    seen = silent(lambda t: t[0] == 100, "it changed").look(lambda: None)
    assert seen.failed
    assert "None, which cannot be judged: TypeError" in seen.observed


def test_slow_by_count_needs_no_clock():
    symptom = slower(4, count="loads")
    before = symptom.look(lambda: 64)
    assert before.shown is None
    assert before.observed == "64 loads"
    assert symptom.look(lambda: 1).observed == "1 load"
    assert slower(4, count="ms").look(lambda: 1).observed == "1 ms"
    broken, fixed = symptom.judge(lambda: 64, before, lambda: 16)
    assert broken.shown
    assert fixed.healthy
    broken, fixed = symptom.judge(lambda: 64, before, lambda: 17)
    assert not broken.shown
    assert not fixed.healthy


def test_slow_by_clock():
    symptom = slower(2)

    def quick():
        sum(range(2_000))

    def slow():
        sum(range(20_000))

    before = symptom.look(slow)
    assert before.shown is None
    assert before.measured["seconds"] > 0
    broken, fixed = symptom.judge(slow, before, quick)
    assert broken.shown
    assert broken.observed == "at least 2 times the time of the fixed code"
    assert fixed.healthy
    broken, _ = symptom.judge(quick, symptom.look(quick), slow)
    assert broken.shown is False


def test_a_count_that_is_none_is_told():
    seen = slower(2, count="loads").look(lambda: "many")
    assert seen.failed
    assert "where the number of loads was expected" in seen.observed
    broken, _ = slower(2, count="loads").judge(lambda: "many", seen, lambda: 1)
    assert not broken.shown


def test_heavy_counts_the_peak():
    symptom = heavier(3)
    before = symptom.look(lambda: torch.zeros(1000, 1000) + torch.zeros(1000, 1))
    assert before.measured["peak_bytes"] == 8_004_000
    broken, fixed = symptom.judge(
        lambda: 0, before, lambda: torch.zeros(1000) + torch.zeros(1000)
    )
    assert broken.shown
    assert fixed.healthy
    assert fixed.measured["peak_bytes"] == 12_000


def test_varies_runs_and_reseeds():
    free = varies("the draw changes", repeats=3)
    seeded = varies("the draw changes", repeats=3, seed=1)
    assert free.look(lambda: torch.rand(2)).shown
    assert seeded.look(lambda: torch.rand(2)).healthy
    assert seeded.look(np.random.rand).healthy
    generator = torch.Generator()
    assert seeded.look(lambda: torch.rand(2, generator=generator)).shown
    calls = []
    varies("it grows", repeats=5).look(lambda: calls.append(1))
    assert len(calls) == 5


def test_hangs_stops_and_ends_children():
    def never():
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
        while child.poll() is None:
            time.sleep(0.01)

    before = child_pids()
    symptom = hangs(0.5)
    assert symptom.look(never).shown
    assert child_pids() <= before
    assert symptom.look(lambda: 3).healthy


def test_code_that_never_returns_is_stopped(monkeypatch):
    monkeypatch.setattr("labkit.lesson.symptom.RUN_LIMIT", 0.3)

    def never():
        while True:
            pass

    seen = silent(bool, "").look(never)
    assert seen.failed
    assert seen.observed == "stopped: not finished after 0.3 s"


def test_system_exit_is_told_and_interrupt_is_not_swallowed():
    seen = silent(bool, "").look(sys.exit)
    assert seen.failed
    assert seen.observed.startswith("SystemExit")

    def interrupted():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        silent(bool, "").look(interrupted)


def test_same():
    nan = float("nan")
    assert same(torch.tensor([1.0, nan]), torch.tensor([1.0, nan]))
    assert not same(torch.zeros(2), torch.zeros(3))
    assert same({"a": [np.ones(2)]}, {"a": [np.ones(2)]})
    assert not same([1, 2], [1, 3])
    assert same(nan, nan)


@pytest.mark.parametrize(
    ("bytes", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (4_000_000, "4 MB"),
        (999_999, "1 MB"),
        (516_100_000, "516 MB"),
    ],
)
def test_size(bytes, text):
    assert size(bytes) == text


def test_duration_is_coarse():
    assert duration(0.0047) == "about 5 ms"
    assert duration(12.3) == "about 10 s"
    assert duration(3e-7) == "about 0.3 µs"


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: raises("ValueError", "x"), "errors takes exception types"),
        (lambda: raises(ValueError, "("), "match takes a pattern"),
        (lambda: warns(ValueError, "x"), "category takes a Warning type"),
        (lambda: silent(3, ""), "wrong takes a function"),
        (lambda: slower(0.5), "factor is a number above 1"),
        (lambda: heavier("2"), "factor is a number above 1"),
        (lambda: varies("", repeats=1), "repeats is a whole number from 2"),
        (lambda: hangs(-1), "seconds is a number up to"),
    ],
)
def test_bad_input(make, says):
    with pytest.raises(LabError, match=says):
        make()


class Unreadable(Exception):
    def __str__(self):
        raise ZeroDivisionError


def test_an_error_whose_message_raises_is_told():
    def run():
        raise Unreadable

    seen = silent(bool, "").look(run)
    assert seen.failed
    assert seen.observed == (
        "Unreadable: its message cannot be read, ZeroDivisionError"
    )


def test_a_result_whose_repr_does_not_end_is_stopped():
    class Endless:
        def __repr__(self):
            while True:
                pass

    assert hangs(0.2).look(Endless).shown


@pytest.mark.parametrize("value", [10**400, torch.eye(2).to_sparse()])
def test_a_result_that_no_float_holds_is_judged_all_the_same(value):
    seen = silent(lambda result: result is value, "").look(lambda: value)
    assert seen.shown
    assert seen.measured == {}


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_a_process_that_the_code_leaves_behind_is_ended():
    left = []

    def run():
        left.append(subprocess.Popen(["sleep", "60"]))
        return 1

    assert silent(lambda value: value == 1, "").look(run).shown
    assert left[0].poll() is not None
