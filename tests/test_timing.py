"""`compare`: the judgement on injected timings, and the measuring around it."""

import gc
import json
import math
import random
import sys
import time

import numpy as np
import pytest
import torch

from labkit.measure.comparison import Comparison
from labkit.measure.judgement import Block, choose_times, judge
from labkit.measure.rounds import device_clock, time_block, time_rounds
from labkit.measure.timing import compare


def noisy(factor: float, count: int, seed: int, pauses: float = 0.0) -> list[float]:
    """Timings around 1 ms, some of them with a pause of 4 ms."""
    draw = random.Random(seed)
    return [
        1e-3 * factor * draw.lognormvariate(0, 0.05) + 4e-3 * (draw.random() < pauses)
        for _ in range(count)
    ]


# --- the judgement: no clock involved


@pytest.mark.parametrize(
    ("factor", "verdict"),
    [
        (1.0, "no difference seen"),
        (1.02, "no difference seen"),
        (1 / 1.02, "no difference seen"),
        (1.3, "slower"),
        (1 / 1.3, "faster"),
        (100.0, "slower"),
    ],
)
def test_verdicts_on_noisy_timings(factor, verdict):
    result = judge(noisy(1, 400, seed=1), noisy(factor, 400, seed=2))
    assert result.verdict == verdict
    low, high = result.interval
    assert low < result.ratio < high
    assert low < factor < high


def test_exact_timings_are_judged_at_the_edge_of_the_dead_zone():
    assert judge([1.0] * 20, [1.031] * 20).verdict == "slower"
    assert judge([1.0] * 20, [1.029] * 20).verdict == "no difference seen"
    assert judge([1.0] * 20, [1 / 1.029] * 20).verdict == "no difference seen"
    assert judge([1.0] * 20, [1 / 1.031] * 20).verdict == "faster"


def test_the_interval_is_students_t_over_ten_groups():
    # twenty pairs: groups of two, their medians are the logs 0, 0.1, ... 0.9
    logs = [group / 10 for group in range(10) for _ in range(2)]
    result = judge([1.0] * 20, [math.exp(value) for value in logs])
    half_width = 3.2498 * np.std(np.arange(10) / 10, ddof=1) / math.sqrt(10)
    assert math.log(result.ratio) == pytest.approx(0.45)
    low, high = (math.log(end) for end in result.interval)
    assert (low, high) == pytest.approx((0.45 - half_width, 0.45 + half_width))


def test_pauses_in_some_blocks_are_no_difference():
    wrong = sum(
        judge(noisy(1, 300, seed, 0.2), noisy(1, 300, seed + 1000, 0.2)).verdict
        != "no difference seen"
        for seed in range(200)
    )
    assert wrong <= 4  # 2 %


def test_a_drift_of_the_machine_is_no_difference():
    drift = [1e-3 * (1 + step / 100) for step in range(400)]
    assert judge(drift, drift).ratio == 1.0


@pytest.mark.parametrize("count", [1, 2, 19])
def test_below_twenty_pairs_nothing_is_judged(count):
    result = judge([1.0] * count, [3.0] * count)
    assert result.verdict == "too few runs"
    assert result.ratio == pytest.approx(3)
    assert result.interval == (0.0, math.inf)


@pytest.mark.parametrize("timings", [([], []), ([1.0], [1.0, 2.0])])
def test_timings_that_are_no_pairs_are_refused(timings):
    with pytest.raises(ValueError, match="pair by pair"):
        judge(*timings)


# --- which clock counts


def blocks(count: int, paused: int, waited: int = 0, thread: float = 1e-3):
    """Blocks of 1 ms on the processor; some paused by others, some waiting."""
    return [
        Block(5e-3 if i < paused else 1e-3, thread, i < waited) for i in range(count)
    ]


def test_processor_time_counts_where_both_clocks_agree_on_quiet_blocks():
    clock, times = choose_times({"a": blocks(40, 30), "b": blocks(40, 0)})
    assert clock == "processor"
    assert times["a"] == [1e-3] * 40


@pytest.mark.parametrize(
    "other",
    [
        blocks(40, paused=40),  # never agrees: it sleeps, or works in other threads
        blocks(40, paused=20, waited=20),  # gave the processor up by itself
        blocks(40, paused=0, thread=math.nan),  # no fine clock on this platform
        blocks(40, paused=0, thread=0.0),  # a clock too coarse to move
        blocks(19, paused=0),  # too few to tell
    ],
    ids=["never agrees", "waits", "no clock", "coarse clock", "few"],
)
def test_the_wall_clock_counts_for_all_where_one_does_not_fit(other):
    quiet = blocks(len(other), paused=0)
    clock, times = choose_times({"a": quiet, "b": other})
    assert clock == "wall"
    assert times["b"] == [block.wall_s for block in other]


# --- measuring


class FakeMachine:
    """A clock that only the functions under test move."""

    def __init__(self):
        self.now = 0.0

    def clock(self) -> float:
        return self.now

    def takes(self, seconds: float, ran: list[str] | None = None, name: str = ""):
        def run():
            self.now += seconds
            if ran is not None:
                ran.append(name)

        return run


@pytest.fixture
def machine(monkeypatch):
    machine = FakeMachine()
    monkeypatch.setattr("labkit.measure.rounds._thread_s", machine.clock)
    return machine


def test_blocks_hold_as_many_calls_as_fit_into_a_fifth_of_a_millisecond(machine):
    ran: list[str] = []
    functions = {
        "a": machine.takes(1e-6, ran, "a"),
        "b": machine.takes(50e-6, ran, "b"),
    }
    taken = time_rounds(functions, machine.clock, 0.1)
    tail = "".join(ran[-5000:])
    per_round = tail.count("a") / tail.count("b")
    assert per_round == pytest.approx(200 / 4, rel=0.1)
    assert taken["a"][0].wall_s == pytest.approx(1e-6)
    assert taken["b"][0].wall_s == pytest.approx(50e-6)
    assert len(taken["a"]) == len(taken["b"]) > 100


def test_rounds_come_in_random_order(machine):
    ran: list[str] = []
    functions = {name: machine.takes(1e-3, ran, name) for name in "ab"}
    time_rounds(functions, machine.clock, 0.4)
    rounds = {"".join(pair) for pair in zip(ran[-100::2], ran[-99::2], strict=True)}
    assert rounds == {"ab", "ba"}


@pytest.mark.parametrize(
    ("seconds_a_call", "rounds", "most_s"),
    [
        (1e-6, 700, 0.31),
        (5e-3, 27, 0.34),
        (50e-3, 20, 2.2),  # goes on until there are twenty
        (0.2, 6, 3.0),  # goes on to the limit
        (2.0, 1, 4.0),  # over the limit at once: one call of each
    ],
)
def test_slow_functions_run_on_to_the_limit_and_no_further(
    machine, seconds_a_call, rounds, most_s
):
    functions = {name: machine.takes(seconds_a_call) for name in "ab"}
    taken = time_rounds(functions, machine.clock, 0.3)
    assert len(taken["a"]) == pytest.approx(rounds, rel=0.15)
    assert machine.now <= most_s + 1e-9


def test_time_that_others_had_the_processor_is_not_counted(machine, monkeypatch):
    own = FakeMachine()
    monkeypatch.setattr("labkit.measure.rounds._thread_s", own.clock)

    def half_the_time_paused():
        own.now += 1e-3
        machine.now += 2e-3

    functions = {"a": half_the_time_paused, "b": half_the_time_paused}
    taken = time_rounds(functions, machine.clock, 0.3)
    assert sum(block.thread_s for block in taken["a"]) == pytest.approx(0.15, rel=0.1)
    assert machine.now == pytest.approx(0.6, rel=0.1)


def test_a_clock_that_stands_still_does_not_divide_by_zero():
    assert time_block(lambda: None, 1, lambda: 1.0).wall_s > 0


def test_the_collector_pauses_in_a_block_and_is_as_it_was_afterwards():
    states: list[bool] = []
    time_block(
        lambda: states.append(gc.isenabled()), 2, device_clock(torch.device("cpu"))
    )
    assert states == [False, False]
    assert gc.isenabled()
    gc.disable()
    try:
        time_block(lambda: None, 1, device_clock(torch.device("cpu")))
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_an_accelerator_is_waited_for_before_the_clock_is_read(monkeypatch):
    waited: list[torch.device] = []
    monkeypatch.setattr(torch.accelerator, "synchronize", waited.append)
    clock = device_clock(torch.device("cuda"))
    time_block(lambda: None, 3, clock)
    assert waited == [torch.device("cuda")] * 2


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux counts waits")
def test_sleeping_counts_as_a_wait_and_computing_does_not():
    assert time_block(lambda: time.sleep(1e-4), 1, time.perf_counter).waited
    computed = [
        time_block(lambda: sum(range(50)), 10, time.perf_counter) for _ in range(50)
    ]
    assert sum(block.waited for block in computed) < 25


# --- compare itself


def spin(count: int):
    def run():
        for _ in range(count):
            pass

    return run


def test_a_true_factor_of_two_is_called_and_none_is_not():
    for _ in range(3):  # the machine may be crowded: one clean answer in three
        result = compare({"one": spin(2000), "same": spin(2000), "two": spin(4000)})
        if result.verdicts == {"same": "no difference seen", "two": "slower"}:
            break
    assert result.verdicts == {"same": "no difference seen", "two": "slower"}
    assert result.verdict == "slower"
    assert result.ratio == result.ratios["two"]
    assert result.interval == result.intervals["two"]
    assert 1.5 < result.ratio < 2.7
    assert list(result.median_s) == ["one", "same", "two"]
    assert result.median_s["two"] > result.median_s["one"]
    assert len(result.times_s["one"]) == result.pairs >= 20


def test_waiting_is_part_of_the_cost():
    functions = {
        "short": lambda: time.sleep(1e-3),
        "long": lambda: time.sleep(6e-3),
    }
    result = compare(functions, seconds=0.2)
    assert result.clock == "wall"
    assert result.verdict == "slower"
    assert result.median_s["long"] >= 6e-3


@pytest.mark.parametrize(("count", "seconds"), [(2, 0.4), (3, 0.6)])
def test_every_pair_gets_the_time_asked_for(count, seconds, monkeypatch):
    asked: list[float] = []

    def record(functions, clock, seconds):
        asked.append(seconds)
        return {name: [Block(1.0, 1.0, False)] for name in functions}

    monkeypatch.setattr("labkit.measure.timing.time_rounds", record)
    compare({name: spin(1) for name in "abc"[:count]}, seconds=0.4)
    assert asked == pytest.approx([seconds])


def test_threads_are_set_and_put_back():
    before = torch.get_num_threads()
    seen: set[int] = set()
    note = {name: lambda: seen.add(torch.get_num_threads()) for name in "ab"}
    torch.set_num_threads(2)
    try:
        compare(note, seconds=0.01)
        assert seen == {1}
        assert torch.get_num_threads() == 2
        seen.clear()
        assert compare(note, seconds=0.01, threads=3).threads == 3
        assert seen == {3}
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_random_states_are_untouched():
    def states():
        return (
            random.getstate(),
            repr(np.random.get_state()),
            torch.get_rng_state().tolist(),
        )

    before = states()
    compare({"a": spin(10), "b": spin(10)}, seconds=0.01)
    assert states() == before


def failing_after(calls: int, error: BaseException):
    """A function that raises at one call too many."""
    left = [calls]

    def run():
        left[0] -= 1
        if left[0] < 0:
            raise error

    return run


@pytest.mark.parametrize("calls", [0, 1, 500])
def test_an_interrupt_stops_it_and_threads_are_put_back(calls):
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with pytest.raises(KeyboardInterrupt):
            compare({"a": spin(1), "b": failing_after(calls, KeyboardInterrupt())})
        assert torch.get_num_threads() == 2
        assert gc.isenabled()
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("calls", [0, 1, 500])
def test_an_alternatives_error_names_it(calls):
    error = ZeroDivisionError("mine")
    with pytest.raises(ZeroDivisionError, match="mine") as caught:
        compare({"good": spin(1), "bad one": failing_after(calls, error)})
    assert caught.value is error
    assert len(error.__notes__) == 1
    assert "'bad one'" in error.__notes__[0]
    assert gc.isenabled()


def numbers():
    yield 1


async def coroutine():
    return 1


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda: compare([spin(1), spin(1)]), TypeError, "of type list"),
        (lambda: compare({"a": spin(1)}), ValueError, "got 1"),
        (lambda: compare({}), ValueError, "got 0"),
        (lambda: compare({"a": spin(1), "b": torch.ones(2)}), TypeError, "Tensor"),
        (lambda: compare({"a": spin(1), "b": None}), TypeError, "lambda"),
        (lambda: compare({"a": spin(1), 2: spin(1)}), TypeError, "name 2"),
        (lambda: compare({"a": spin(1), " ": spin(1)}), TypeError, "name ' '"),
        (lambda: compare({"a": numbers, "b": spin(1)}), TypeError, "a generator"),
        (lambda: compare({"a": spin(1), "b": coroutine}), TypeError, "a coroutine"),
        (lambda: compare(PAIR, threads=0), ValueError, "threads=0"),
        (lambda: compare(PAIR, threads=True), ValueError, "threads=True"),
        (lambda: compare(PAIR, threads="2"), ValueError, "threads='2'"),
        (lambda: compare(PAIR, seconds=-1), ValueError, "seconds=-1"),
        (lambda: compare(PAIR, seconds=math.nan), ValueError, "seconds=nan"),
        (lambda: compare(PAIR, seconds=math.inf), ValueError, "seconds=inf"),
        (lambda: compare(PAIR, seconds="1"), ValueError, "seconds='1'"),
        (lambda: compare(PAIR, device="moon"), ValueError, "device='moon'"),
        (lambda: compare(PAIR, device="meta"), ValueError, "device='meta'"),
        (lambda: compare(PAIR, device=[1]), ValueError, r"device=\[1\]"),
    ],
)
def test_bad_input_gets_one_sentence(call, error, says):
    with pytest.raises(error, match=says) as caught:
        call()
    message = str(caught.value)
    assert "compare" in message
    assert message.endswith(".")
    assert "\n" not in message
    assert ". " not in message


PAIR = {"a": spin(1), "b": spin(1)}


@pytest.mark.skipif(torch.accelerator.is_available(), reason="has an accelerator")
def test_a_device_that_is_not_there_is_refused():
    with pytest.raises(ValueError, match=r"device='cuda'.*no accelerator"):
        compare(PAIR, device="cuda")


def test_a_coroutine_leaves_no_warning(recwarn):
    with pytest.raises(TypeError):
        compare({"a": coroutine, "b": spin(1)})
    gc.collect()
    assert not recwarn.list


# --- what it shows


AWKWARD = "x[0] | `y` * $z_1$\nnew line"


def example(factor: float = 1.3, count: int = 40) -> Comparison:
    first = noisy(1, count, seed=1)
    return Comparison.from_times(
        {
            "first": first,
            AWKWARD: [time * 0.5 for time in first],
            "last": [time * factor for time in first],
        }
    )


def test_the_repr_is_one_line():
    text = repr(example())
    assert "\n" not in text
    assert "last against first: slower, 1.30× (1.30 to 1.30)" in text
    assert "new line against first: faster, 0.50×" in text
    assert "40 rounds in random order, 1 thread, wall time" in text
    few = repr(Comparison.from_times({"a": [2.0], "b": [3.0]}))
    assert "b against a: too few runs, 1.50×; 1 round" in few


def test_the_table_survives_awkward_names():
    lines = example()._repr_markdown_().splitlines()
    table = [line for line in lines if line.startswith("|")]
    assert len(table) == 5
    columns = [line.replace("\\|", "").count("|") for line in table]
    assert columns == [6] * 5
    assert r"x\[0\] \| \`y\` \* \$z\_1\$ new line" in table[3]
    assert table[4] == (
        f"| last | {1.3 * median_ms():.2f} ms | 1.30× | 1.30 to 1.30 | slower |"
    )
    few = Comparison.from_times({"a": [2.0], "b": [3.0]})._repr_markdown_()
    assert "| b | 3.00 s | 1.50× | not known | too few runs |" in few


def median_ms() -> float:
    return float(np.median(noisy(1, 40, seed=1))) * 1e3


def test_units_go_from_nanoseconds_to_seconds():
    scales = {"a": 3e-8, "b": 4.5e-6, "c": 0.0123, "d": 1234.0}
    table = Comparison.from_times({n: [s] * 20 for n, s in scales.items()})
    text = table._repr_markdown_()
    for shown in ("30.0 ns", "4.50 µs", "12.3 ms", "1,234 s"):
        assert shown in text


@pytest.mark.parametrize("factor", [1.3, 1000.0])
def test_the_plot_says_what_it_shows(factor, tmp_path):
    figure = example(factor).plot()
    figure.savefig(tmp_path / "plot.png")
    assert figure.get_facecolor() == (1.0, 1.0, 1.0, 1.0)
    said = figure.get_label()
    assert said.startswith("Timings of each alternative")
    assert "slower" in said
    assert "faster" in said
    (axes,) = figure.axes
    labels = [label.get_text() for label in axes.get_yticklabels()]
    assert [label.splitlines()[0] for label in labels] == [
        "first",
        "x[0] | `y` * $z_1$ new line",
        "last",
    ]


def test_the_plot_of_a_single_round_and_broken_mathematics_can_be_drawn(tmp_path):
    figure = Comparison.from_times({"a": [2.0], r"$\frac{$": [3.0]}).plot()
    figure.savefig(tmp_path / "plot.png")
    assert "too few runs" in figure.get_label()


def test_one_series_is_no_comparison():
    with pytest.raises(ValueError, match="at least two"):
        Comparison.from_times({"a": [1.0]})


def test_the_result_is_plain_numbers():
    result = compare(PAIR, seconds=0.02)
    assert json.loads(json.dumps([result.ratio, result.median_s, result.verdicts]))
    with pytest.raises(AttributeError):
        result.ratio = 1.0
