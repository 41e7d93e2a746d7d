"""Functions timed in rounds: one block of each, in random order."""

import gc
import math
import random
import sys
import time
import timeit
from collections.abc import Callable, Mapping
from itertools import repeat
from typing import Any

import torch

from labkit.measure.judgement import FEWEST_PAIRS, Block

BLOCK_S = 0.2e-3  # long against the clock's own cost, short against a machine's moods
LIMIT_S = 3.0  # how long slow functions may take to reach the fewest pairs
WARM_UP = 0.05  # this share of the measuring time is run and not counted
_SLOW_S = 0.05  # a block this long is no hiccup: it isn't repeated to make sure

Function = Callable[[], Any]
Clock = Callable[[], float]

if sys.platform == "linux":
    import resource

    def _waits() -> int:
        """Return how often this thread has given up the processor by itself."""
        return resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw

    _thread_s = time.thread_time
else:
    # Waiting can't be told from being interrupted on macOS, and Windows counts
    # processor time in steps of 16 ms: only the wall clock is left.
    def _waits() -> int:
        return 0

    def _thread_s() -> float:
        return math.nan


def device_clock(device: torch.device) -> Clock:
    """Return a wall clock, in s, that first waits for the device's queued work."""
    if device.type == "cpu":
        return timeit.default_timer

    # torch.utils.benchmark.timer does the same, but before torch 2.7 not for MPS
    def clock() -> float:
        torch.accelerator.synchronize(device)
        return timeit.default_timer()

    return clock


def call(name: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function; an error leaves with a note that names the alternative."""
    try:
        return function(*arguments)
    except Exception as error:
        error.add_note(f"Raised by {name!r}, which compare called without arguments.")
        raise


def time_block(function: Function, calls: int, clock: Clock) -> Block:
    """Time `calls` calls in a row, with the garbage collector paused.

    Args:
        function: called without arguments.
        calls: how often, at least once.
        clock: as from `device_clock`.

    Returns:
        The block, in seconds per call.

    Example:
        >>> time_block(lambda: sum(range(100)), 200, timeit.default_timer).waited
        False
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        waits = _waits()
        # the wall clock inside: reading the other one costs as much as a small call
        thread_start = _thread_s()
        start = clock()
        for _ in repeat(None, calls):
            function()
        # a coarse clock may not have moved: no time at all has no logarithm
        wall = max(clock() - start, 1e-9)
        thread = _thread_s() - thread_start
        return Block(wall / calls, thread / calls, _waits() > waits)
    finally:
        if collecting:
            gc.enable()


def time_rounds(
    functions: Mapping[str, Function], clock: Clock, seconds: float
) -> dict[str, list[Block]]:
    """Time rounds for `seconds`, or up to 3 s where that would be too few.

    Time in which other programs had the processor is not counted (on Linux, where it
    is known), and fewer than 20 rounds are too few: both make it go on, up to 3 s.

    Args:
        functions: by name; each has been called before.
        clock: as from `device_clock`.
        seconds: measuring time for all of them together.

    Returns:
        The blocks of each function, by name, at least one: those at one index were
        taken in one round.

    Example:
        >>> blocks = time_rounds({"a": f, "b": g}, timeit.default_timer, 0.5)
    """
    began = clock()
    calls: dict[str, int] = {}
    first: dict[str, Block] = {}
    for name, function in functions.items():
        calls[name], first[name] = _calls_per_block(name, function, clock)
    order = list(functions)
    shuffle = random.Random().shuffle  # of its own: the learner's seeds stay
    rounds: list[dict[str, Block]] = []
    round_s = sum(calls[name] * _own_s(first[name]) for name in order)
    counted_s = 0.0
    while len(rounds) < FEWEST_PAIRS or counted_s + round_s <= seconds:
        if clock() - began + round_s > max(seconds, LIMIT_S):
            break
        shuffle(order)
        taken: dict[str, Block] = {}
        for name in order:
            taken[name] = call(name, time_block, functions[name], calls[name], clock)
        round_s = sum(calls[name] * _own_s(taken[name]) for name in order)
        counted_s += round_s
        if counted_s > WARM_UP * seconds:
            rounds.append(taken)
    # so slow that finding the number of calls used up the time: count those calls
    rounds = rounds or [first]
    return {name: [taken[name] for taken in rounds] for name in functions}


def _own_s(block: Block) -> float:
    """Return the seconds per call without others' use of the processor, if known."""
    if block.waited or math.isnan(block.thread_s):
        return block.wall_s
    return min(block.wall_s, block.thread_s)


def _calls_per_block(name: str, function: Function, clock: Clock) -> tuple[int, Block]:
    """Return how many calls make a block, and the last block tried."""
    calls = 1
    while True:
        # a pause makes a block longer, never shorter: take the least
        tries: list[Block] = []
        while len(tries) < 3 and (not tries or _own_s(tries[-1]) * calls < _SLOW_S):
            tries.append(call(name, time_block, function, calls, clock))
        least = min(tries, key=_own_s)
        took = max(_own_s(least) * calls, 1e-9)
        if took >= BLOCK_S / 2:
            return max(1, round(calls * BLOCK_S / took)), least
        # a short block is mostly the clock's own cost: approach the length in steps
        calls = math.ceil(calls * min(10.0, max(2.0, BLOCK_S / took)))
