"""Honest timing of alternatives: `compare`."""

import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any

import torch

from labkit.measure.comparison import Comparison
from labkit.measure.judgement import choose_times
from labkit.measure.rounds import call, device_clock, time_rounds


def compare(
    alternatives: Mapping[str, Callable[[], Any]],
    *,
    threads: int = 1,
    device: str | torch.device | None = None,
    seconds: float = 0.3,
) -> Comparison:
    """Time alternatives side by side and judge each against the first.

    All are called once, then timed in rounds: one block of about 0.2 ms (or one call)
    of each, in random order, so that whatever slows the machine down meets all of
    them. `judge` (labkit.measure.judgement) turns the rounds into verdicts; a
    difference below 3 % is never reported. On a crowded machine, or with fewer than
    20 rounds, it goes on for up to 3 s; below 20 the verdict is "too few runs".

    Where every alternative computes without waiting, the processor time of the thread
    counts, not the wall clock: that leaves out the moments in which other programs
    had the processor (`choose_times` in labkit.measure.judgement; on Linux only).

    The garbage collector pauses during a block and runs between blocks: it would
    charge one alternative for objects that another left behind. What it would cost
    is therefore in no figure. The random state of torch and Python isn't touched.

    Args:
        alternatives: name → function without arguments, at least two.
        threads: intra-op threads of torch while measuring; put back afterwards.
        device: device that is waited for before the clock is read; None takes the
            accelerator if there is one, "cpu" waits for nothing.
        seconds: measuring time for each pair of alternatives, in seconds; the first
            calls (which may compile or load something) come on top.

    Returns:
        The comparison: `verdict`, `ratio` (last ÷ first) and `interval`, and by name
        `median_s` (seconds per call), `verdicts`, `ratios`, `intervals`.

    Raises:
        TypeError: alternatives that aren't a dict of functions, or that return a
            generator or coroutine (calling those runs nothing).
        ValueError: fewer than two alternatives, or a number out of range.
        An alternative's own error is let through, with a note that names it.

    Example:
        >>> x = torch.randn(1000)
        >>> compare({"loop": lambda: [v * 2 for v in x], "tensor": lambda: x * 2})
        <Comparison: tensor against loop: faster, 0.0015× (0.0014 to 0.0015); ...>
    """
    # not at the top: this adds 0.15 s to the import of torch
    from torch.utils.benchmark import set_torch_threads

    _check(alternatives, threads, seconds)
    clock = device_clock(_chosen(device))
    with set_torch_threads(threads):
        for name, function in alternatives.items():
            _refuse_unrun(name, call(name, function))
        blocks = time_rounds(alternatives, clock, seconds * len(alternatives) / 2)
    clock_name, times_s = choose_times(blocks)
    return Comparison.from_times(times_s, threads, clock_name)


def _refuse_unrun(name: str, result: Any) -> None:
    if inspect.iscoroutine(result):
        result.close()  # else Python warns that it was never awaited
    elif not inspect.isgenerator(result) and not inspect.isasyncgen(result):
        return
    kind = type(result).__name__
    raise TypeError(
        f"compare cannot time {name!r}: calling it only makes a {kind} and runs none "
        "of its code; give a function that runs it to the end."
    )


def _chosen(device: str | torch.device | None) -> torch.device:
    """Return the device to wait for."""
    present = torch.device("cpu")
    if torch.accelerator.is_available():
        present = torch.accelerator.current_accelerator() or present
    if device is None:
        return present
    try:
        wanted = torch.device(device)
    except (RuntimeError, TypeError):
        wanted = None
    if wanted is None or wanted.type not in ("cpu", present.type):
        has = "no accelerator" if present.type == "cpu" else f"only {present.type!r}"
        raise ValueError(
            f"compare got device={device!r}, which it cannot wait for: there is {has} "
            "beside 'cpu' here; None takes what there is."
        )
    return wanted


def _check(alternatives: object, threads: object, seconds: object) -> None:
    """Refuse wrong arguments, each in one sentence."""
    accepted = "a dict {name: function, name: function, ...}"
    if not isinstance(alternatives, Mapping):
        kind = type(alternatives).__name__
        raise TypeError(f"compare takes {accepted}, and got a value of type {kind}.")
    if len(alternatives) < 2:
        raise ValueError(
            f"compare takes {accepted} with at least two entries, and got "
            f"{len(alternatives)}."
        )
    for name, function in alternatives.items():
        if not isinstance(name, str) or not name.strip():
            raise TypeError(
                f"compare takes {accepted}; the name {name!r} is not a text that "
                "says something."
            )
        if not callable(function):
            raise TypeError(
                f"compare got a value of type {type(function).__name__} for {name!r}: "
                "give the function itself, as in lambda: f(x), not its result."
            )
    if not isinstance(threads, int) or isinstance(threads, bool) or threads < 1:
        raise ValueError(
            f"compare got threads={threads!r}; it takes a whole number from 1."
        )
    if (
        not isinstance(seconds, int | float)
        or isinstance(seconds, bool)
        or not 0 < seconds < math.inf
    ):
        raise ValueError(
            f"compare got seconds={seconds!r}; it takes a number of seconds above 0."
        )
