"""A learner's code is stopped, quiet, and leaves the process as it was."""

import gc
import os
import random
import re
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from labkit.lesson import guard
from labkit.lesson.guard import Runaway, guarded

SHORT = 0.2
on_main = pytest.mark.skipif(
    not hasattr(signal, "setitimer"), reason="needs an alarm signal"
)


@pytest.fixture(autouse=True)
def little_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "GRACE", 0.2)


def stopped(run: Callable[[], Any], seconds: float = SHORT) -> bool:
    try:
        with guarded(seconds=seconds):
            run()
    except Runaway:
        return True
    return False


def in_thread(run: Callable[[], Any]) -> Any:
    """What `run` returns on a thread that no signal reaches."""
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(run()))
    thread.start()
    thread.join(30)
    assert not thread.is_alive()
    (result,) = results
    return result


def loop() -> None:
    while True:
        pass


def catches_exceptions() -> None:
    while True:
        try:
            sum(range(100))
        except Exception:
            return


def swallows_everything() -> None:
    while True:
        try:
            time.sleep(1)
        except BaseException:
            continue


def swallows_while_busy() -> None:
    while True:
        try:
            loop()
        except BaseException as error:
            str(error)


def sleeps() -> None:
    time.sleep(20)


def matches() -> None:
    re.match(r"(a+)+$", "a" * 40 + "b")


# --- the limit -----------------------------------------------------------------------


@on_main
@pytest.mark.parametrize(
    "run",
    [
        loop,
        catches_exceptions,
        sleeps,
        matches,
        swallows_everything,
        swallows_while_busy,
    ],
    ids=lambda run: run.__name__,
)
def test_what_does_not_end_is_stopped_by_a_signal(run: Callable[[], Any]) -> None:
    assert stopped(run)


@pytest.mark.parametrize("run", [loop, catches_exceptions])
def test_what_does_not_end_is_stopped_on_another_thread(run: Callable[[], Any]) -> None:
    assert in_thread(lambda: stopped(run))


def test_what_ends_in_time_is_left_alone() -> None:
    assert not stopped(lambda: time.sleep(SHORT / 4))
    assert not in_thread(lambda: stopped(lambda: time.sleep(SHORT / 4)))
    time.sleep(1.5 * SHORT)  # and nothing comes later


@on_main
def test_timer_and_handler_of_others_go_on() -> None:
    rang = threading.Event()
    before = signal.signal(signal.SIGALRM, lambda *_: rang.set())
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.5)
        assert stopped(loop, 0.1)
        assert not rang.is_set()
        assert 0 < signal.getitimer(signal.ITIMER_REAL)[0] < 0.5
        assert rang.wait(5) or rang.is_set()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@on_main
def test_nested_blocks_have_their_own_limits() -> None:
    inner: list[bool] = []

    def outer() -> None:
        inner.append(stopped(loop, 0.1))
        loop()

    assert stopped(outer, 0.5)
    assert inner == [True]


@on_main
def test_the_outer_limit_holds_in_an_inner_block() -> None:
    def outer() -> None:
        stopped(loop, 60)
        loop()

    assert stopped(outer)


def test_a_block_that_is_importing_gets_its_time_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "slow_to_import_once"
    (tmp_path / f"{name}.py").write_text("import time\ntime.sleep(0.5)\nWHOLE = True\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, name, raising=False)
    assert not stopped(lambda: __import__(name), 0.2)
    assert sys.modules[name].WHOLE


def test_an_interrupt_and_an_exit_pass_through() -> None:
    for error in (KeyboardInterrupt, SystemExit, ValueError):
        with pytest.raises(error), guarded():
            raise error


def test_recursion_is_an_error_like_any_other() -> None:
    def again() -> None:
        again()

    with pytest.raises(RecursionError), guarded():
        again()


# --- what is printed -------------------------------------------------------------------


def test_short_output_is_passed_on(capsys: pytest.CaptureFixture[str]) -> None:
    with guarded():
        print("to see")
        print("too", file=sys.stderr)
    assert capsys.readouterr() == ("to see\n", "too\n")


def test_long_output_is_cut_where_it_is_written(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with guarded(output_limit=100):
        for _ in range(1000):
            print("é" * 30)
            print("error", file=sys.stderr)
    out, err = capsys.readouterr()
    assert out.endswith("… output cut at 0.0977 kB\n")
    assert len((out + err).encode()) < 150


def test_the_cut_is_at_four_kilobytes(capsys: pytest.CaptureFixture[str]) -> None:
    with guarded():
        print("x" * 10_000, end="")
        sys.stdout.writelines(["y"] * 10)
    out = capsys.readouterr().out
    assert out == "x" * 4096 + "\n… output cut at 4 kB\n"


def test_streams_are_put_back_and_stay_streams() -> None:
    before = sys.stdout, sys.stderr
    with guarded():
        assert sys.stdout.encoding == before[0].encoding
        sys.stdout.flush()
        sys.stdout = None  # type: ignore[assignment]
    assert (sys.stdout, sys.stderr) == before


# --- what is put back ------------------------------------------------------------------


def state() -> dict[str, Any]:
    return {
        "grad": torch.is_grad_enabled(),
        "inference": torch.is_inference_mode_enabled(),
        "dtype": torch.get_default_dtype(),
        "device": torch.get_default_device(),  # torch 2.6 could raise here
        "threads": torch.get_num_threads(),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "random": random.getstate(),
        "numpy": np.random.get_state()[1].tolist(),
        "torch": torch.get_rng_state().tolist(),
        "filters": list(warnings.filters),
        "folder": os.getcwd(),
        "recursion": sys.getrecursionlimit(),
    }


def open_inference_mode() -> None:
    OPEN.append(torch.inference_mode())
    OPEN[-1].__enter__()


OPEN: list[Any] = []  # kept: a mode that is let go of is left
CHANGES: dict[str, Callable[[], Any]] = {
    "grad": lambda: torch.set_grad_enabled(not torch.is_grad_enabled()),
    "inference": open_inference_mode,
    "dtype": lambda: torch.set_default_dtype(torch.float64),
    "device": lambda: torch.set_default_device("meta"),
    "threads": lambda: torch.set_num_threads(torch.get_num_threads() + 1),
    "deterministic": lambda: torch.use_deterministic_algorithms(True),
    "random": lambda: random.seed(1),
    "numpy": lambda: np.random.seed(1),
    "torch": lambda: torch.manual_seed(1),
    "filters": lambda: warnings.simplefilter("error"),
    "folder": lambda: os.chdir(os.path.abspath(os.sep)),
    "recursion": lambda: sys.setrecursionlimit(2000),
}


@pytest.mark.parametrize("what", CHANGES)
@pytest.mark.parametrize("mode", ["plain", "no_grad", "inference_mode"])
def test_what_the_block_changes_is_put_back(what: str, mode: str) -> None:
    modes = {
        "plain": torch.enable_grad,
        "no_grad": torch.no_grad,
        "inference_mode": torch.inference_mode,
    }
    with modes[mode]():
        before = state()
        with guarded(seconds=60):
            assert state() == before
            CHANGES[what]()
            inside = state()
        after = state()
    if not (what == "inference" and mode == "inference_mode"):
        assert inside[what] != before[what], "the change did not take"
    assert after == before


def test_autograd_works_as_before_after_inference_mode_was_left_open() -> None:
    with guarded():
        open_inference_mode()
    x = torch.ones(2, requires_grad=True)
    (x * x).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [2.0, 2.0]


def test_a_folder_that_the_block_removed_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    with guarded():
        os.chdir(tmp_path)
        folder.rmdir()
    assert Path.cwd() == tmp_path


def test_everything_is_put_back_also_after_an_error() -> None:
    def fails() -> None:
        torch.set_default_dtype(torch.float64)
        torch.rand(1)
        raise ZeroDivisionError

    before = state()
    with pytest.raises(ZeroDivisionError), guarded():
        fails()
    assert state() == before


def test_a_logger_made_in_the_block_is_heard_afterwards(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with guarded(output_limit=10):
        kept = sys.stdout
        print("x" * 100)
    kept.write("said later\n")
    assert capsys.readouterr().out.endswith("said later\n")


def test_less_known_switches_are_put_back_too() -> None:
    with guarded():
        torch.autograd.set_detect_anomaly(True)
        torch.set_warn_always(True)
        np.seterr(all="raise")
        gc.disable()
    assert not torch.is_anomaly_enabled()
    assert not torch.is_warn_always_enabled()
    assert np.geterr()["divide"] == "warn"
    assert gc.isenabled()


@pytest.mark.parametrize("seconds", [SHORT, 30])
def test_a_traced_function_goes_on_after_a_block_on_another_thread(
    seconds: float,
) -> None:
    def block() -> None:
        while seconds == SHORT:
            pass

    def counted() -> int:
        total = 0
        for number in range(4):
            total += number
        return total

    def trace(frame: Any, event: str, arg: Any) -> Any:
        return trace

    def run() -> int:
        stopped(block, seconds)
        sys.settrace(trace)
        try:
            return counted()
        finally:
            sys.settrace(None)

    assert in_thread(run) == 6
