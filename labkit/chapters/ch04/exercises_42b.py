"""The exercise of part 4.2 on the number of workers: read it off a sweep."""

import os
from collections.abc import Callable
from typing import Any

import torch

from labkit.chapters.ch04 import workers_answers as answers
from labkit.lesson.exercise import Exercise, Wrong, given

Answer = Callable[..., Any]

# Batches per second by the number of workers, as sweeps come out.
WAITING = {0: 9.0, 1: 8.8, 3: 26.0, 6: 51.0, 12: 99.0, 25: 96.0}
SMALL = {0: 20.0, 1: 38.0, 3: 60.0, 6: 58.0, 12: 55.0, 25: 41.0}
TRIVIAL = {0: 9000.0, 1: 400.0, 3: 620.0, 6: 610.0, 12: 540.0, 25: 300.0}
DECODING = {0: 20.0, 1: 19.0, 3: 58.0, 6: 97.0, 12: 100.0, 25: 92.0}
NO_LIMIT = 1e6
FAST = 1e6  # batches per second: a step that takes next to no time


def chosen(
    answer: Answer,
    rates: dict[int, float],
    needed: float = FAST,
    processes: int = 1,
    worker_gb: float = 1.0,
    free_gb: float = NO_LIMIT,
    noise: float = 0.05,
) -> int:
    """What the answer chooses, once it is sure to be one of the numbers tried."""
    got = given(answer, rates, needed, processes, worker_gb, free_gb, noise)
    whole = isinstance(got, int) and not isinstance(got, bool)
    assert whole, (
        f"a number of workers is expected, a whole number like 0 or 4; {got!r} came"
    )
    return int(got)


def the_sweep_decides(answer: Answer) -> None:
    """three sweeps, of items that decode, that wait, and that cost nothing"""
    small = chosen(answer, dict(SMALL))
    waiting = chosen(answer, dict(WAITING))
    assert small != waiting, (
        f"3 is right for the items that decode and 12 for those that wait, and both got "
        f"{waiting}: {reflex(waiting)}"
    )
    assert waiting != 0, (
        "of items that wait, 12 workers read 99 batches a second and 0 workers 9, and 0 "
        "was chosen. One worker is a little slower here than none: look further"
    )
    assert waiting == 12, f"for items that wait, {waiting} was chosen instead of 12"
    trivial = chosen(answer, dict(TRIVIAL))
    assert trivial == 0, f"for items that cost nothing, {trivial} was chosen, not 0"
    assert small == 3, (
        f"for items that decode, {SMALL}, {small} was chosen instead of 3"
    )


def reflex(number: int) -> str:
    """Where a number that does not depend on the sweep comes from."""
    if number == max(WAITING):
        return "the largest number that was tried. What did the others reach?"
    if number == os.cpu_count():
        return "`os.cpu_count()`. What do the cores know about what an item costs?"
    if number == formula():
        return "what the article's formula gives here. It has seen neither sweep"
    return "does it read the rates?"


def formula() -> int:
    return min(4 * torch.cuda.device_count(), (os.cpu_count() or 1) // 2)


def within_noise(answer: Answer) -> None:
    """a sweep whose best rates lie closer together than measurements repeat"""
    for noise, right in ((0.05, 6), (0.01, 12)):
        # not sorted: rates come in the order in which they were measured
        rates = {n: DECODING[n] for n in (25, 12, 6, 3, 1, 0)}
        got = chosen(answer, rates, noise=noise)
        best = max(rates, key=lambda n: rates[n])
        assert not (got == best != right), (
            f"{got} is the fastest, with {rates[got]:g} batches a second; {right} workers "
            f"read {rates[right]:g}, which is the same within a noise of {noise:g}"
        )
        assert got == right, (
            f"with a noise of {noise:g}, {right} was expected and {got} came"
        )


def what_the_step_needs(answer: Answer) -> None:
    """a step that computes 25 batches a second, or 98, or 200"""
    for needed, right in ((25.0, 3), (98.0, 6), (200.0, 6)):
        got = chosen(answer, dict(DECODING), needed=needed)
        reads = f"{right} workers read {DECODING[right]:g}"
        assert got <= right, (
            f"the step computes at most {needed:g} batches a second, and {reads}: {got} "
            "workers would only fill the queue"
        )
        assert got == right, (
            f"the step could compute {needed:g} batches a second, and {reads}; {got} came"
        )


def memory(answer: Answer) -> None:
    """7 GB are free and a worker needs 2 GB"""
    got = chosen(answer, dict(WAITING), worker_gb=2.0, free_gb=7.0)
    assert got * 2 <= 7, f"{got} workers of 2 GB need {got * 2} GB, and 7 GB are free"
    assert got == 3, (
        f"3 workers fit and read 26 batches a second; {got} came. The mark is set by "
        "the best that fits, not by what no memory allows"
    )
    got = chosen(answer, dict(DECODING), worker_gb=2.0, free_gb=7.0, needed=57.0)
    assert got == 3, f"with a step of 57 batches a second, 3 was expected; {got} came"


def every_process(answer: Answer) -> None:
    """8 processes of a training on one machine, 60 GB free, 1 GB for a worker"""
    got = chosen(answer, dict(WAITING), processes=8, free_gb=60.0)
    assert got * 8 <= 60, (
        f"each of the 8 processes starts its own {got} workers: {8 * got} GB in all, and "
        "60 GB are free"
    )
    assert got == 6, f"6 workers each would fit, 48 GB in all; {got} came"
    got = chosen(answer, dict(WAITING), processes=8, worker_gb=10.0, free_gb=60.0)
    assert got == 0, f"8 workers of 10 GB do not fit into 60 GB; {got} came, not 0"
    got = chosen(answer, dict(WAITING), processes=8, free_gb=60.0, needed=50.0)
    assert got == 6, (
        "`rates` and `needed` are of one process each: for a step of 50 batches a second "
        f"6 workers read 51, however many processes there are; {got} came"
    )


EXERCISES: list[Exercise] = [
    Exercise(
        id="4.2-workers",
        title="Choose num_workers from a sweep",
        minutes=8,
        difficulty="medium",
        deliver="`choose_workers(...)`: the smallest number that is as good as the best "
        "that fits",
        reference=answers.choose_workers,
        tests=(
            the_sweep_decides,
            within_noise,
            what_the_step_needs,
            memory,
            every_process,
        ),
        hints=(
            "Which of the numbers in `rates` are possible at all?",
            "Of those that fit: a rate above `needed` is worth no more than `needed`, so "
            "compare `min(rates[n], needed)`.",
            "The best of these values sets the mark, `(1 - noise) * best`; the answer is "
            "the smallest number that reaches it.",
        ),
        why="First what is possible, then what it is worth, then the cheapest of what is "
        "equally good. Each worker costs memory and a start in every epoch, so a tie goes "
        "to the smaller number. No core is counted: the sweep ran on them.",
        wrong=(
            Wrong(answers.every_core, "What do the cores know"),
            Wrong(answers.the_formula, "what the article's formula gives here"),
            Wrong(answers.most_workers, "the largest number that was tried"),
            Wrong(answers.until_it_drops, "a little slower here than none"),
            Wrong(answers.the_fastest, "which is the same within a noise of"),
            Wrong(answers.what_is_needed_forgotten, "would only fill the queue"),
            Wrong(answers.memory_forgotten, "of 2 GB need"),
            Wrong(answers.best_of_all, "The mark is set by"),
            Wrong(answers.one_process_only, "starts its own"),
            Wrong(answers.rates_of_all, "are of one process each"),
        ),
        variants=(answers.from_below,),
    )
]
