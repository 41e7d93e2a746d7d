"""The exercise of part 3.2: an epoch of accumulated updates, right for every window."""

from collections.abc import Iterable
from itertools import islice

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from labkit.chapters.ch03 import accumulate_answers as answers
from labkit.chapters.ch03.accumulate_bench import (
    Answer,
    Batch,
    Recorder,
    Watched,
    batches_of,
    off,
    ratio,
    run,
)
from labkit.lesson.exercise import Exercise, Wrong, given


def same_number(got: list[Tensor | None], want: list[Tensor]) -> None:
    few = (
        ": are the last batches left without an update?" if len(got) < len(want) else ""
    )
    assert len(got) == len(want), (
        f"{len(want)} {'update is' if len(want) == 1 else 'updates are'} due, and the "
        f"optimizer's `step` was called {len(got)} times{few}"
    )
    assert None not in got, (
        "when `step` was called the gradients were gone: what lies between `backward` and "
        "`step`?"
    )


def equal_batches(answer: Answer) -> None:
    """eight batches of the same size, in windows of four"""
    got, want, _ = run(answer, batches_of([(4, 4)] * 8), 4)
    same_number(got, want)
    first = ratio(got[0], want[0])
    assert off(got[0], want[0]) < 1e-4, (
        f"the first update's gradient is {first:.3g} times that of one batch of 16: "
        "`backward` adds up, and a mean was asked for"
    )
    assert off(got[1], want[1]) < 1e-4, (
        f"the second update's gradient is off by {off(got[1], want[1]):.0%}: does it still "
        "hold the first window's?"
    )


def last_window(answer: Answer) -> None:
    """six batches in windows of four"""
    got, want, _ = run(answer, batches_of([(4, 4)] * 6), 4)
    same_number(got, want)
    assert off(got[1], want[1]) < 1e-4, (
        "the last window has two batches, and its gradient is "
        f"{ratio(got[1], want[1]):.2g} times that of one batch of the same 8 samples: what "
        "is it divided by?"
    )


def leftovers(answer: Answer) -> None:
    """gradients that were there before"""
    got, want, _ = run(answer, batches_of([(4, 4)] * 4), 4, left=5.0)
    same_number(got, want)
    assert off(got[0], want[0]) < 1e-4, (
        "what stood in `.grad` before the call went into the first update: whose gradient "
        "was it?"
    )


def unequal_batches(answer: Answer) -> None:
    """batches of 8, 8, 8 and 2 samples"""
    got, want, _ = run(answer, batches_of([(8, 8), (8, 8), (8, 8), (2, 2)]), 4)
    same_number(got, want)
    assert off(got[0], want[0]) < 1e-4, (
        f"the gradient is off by {off(got[0], want[0]):.0%}: how much does one sample of "
        "the last batch weigh, and how much does it weigh in one batch of all 26?"
    )


def padding(answer: Answer) -> None:
    """batches of four rows with 4, 1 and 0 labels"""
    got, want, _ = run(answer, batches_of([(4, 4), (4, 1), (4, 0)]), 3)
    same_number(got, want)
    assert off(got[0], want[0]) < 1e-4, (
        f"the gradient is {ratio(got[0], want[0]):.2g} times what it should be: there are "
        "12 rows, and how many of them have a label?"
    )


def one_at_a_time(answer: Answer) -> None:
    """that the model never sees more than one batch"""
    _, _, rows = run(answer, batches_of([(4, 4)] * 4), 4)
    assert max(rows, default=0) <= 4, (
        f"the model was called with {max(rows)} rows, and a batch has 4: accumulating is "
        "for batches that do not fit together"
    )


def count(answer: Answer) -> None:
    """the number that is returned"""
    torch.manual_seed(0)
    model = Watched()
    optimizer = Recorder(model.parameters())
    got = given(answer, model, optimizer, iter(batches_of([(4, 4)] * 5)), 2)
    assert got == 3, (
        f"five batches in windows of two make 3 updates, and the number of updates is "
        f"what is returned; {got!r} came"
    )


def accumulate(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    batches: Iterable[Batch],
    steps: int,
) -> int:
    batches, updates = iter(batches), 0
    while window := list(islice(batches, steps)):
        labels = sum(int((y != -100).sum()) for _, y in window)
        optimizer.zero_grad()
        for x, y in window:
            losses = F.cross_entropy(model(x), y, reduction="sum")
            (losses / labels).backward()
        optimizer.step()
        updates += 1
    return updates


EXERCISES: list[Exercise] = [
    Exercise(
        id="3.2-accumulate",
        title="accumulate, and be right",
        minutes=10,
        difficulty="medium",
        deliver="accumulate(model, optimizer, batches, steps): one epoch of updates, and "
        "their number",
        reference=accumulate,
        tests=(
            equal_batches,
            last_window,
            leftovers,
            unequal_batches,
            padding,
            one_at_a_time,
            count,
        ),
        hints=(
            "Before the first `backward` of a window, which number do you need that is "
            "only known once all batches of the window are there?",
            "`itertools.islice(batches, steps)` takes the next few batches of an iterator, "
            "and fewer at its end. Holding a few batches is cheap; what is large is the "
            "graph of one of them.",
            '`reduction="sum"` adds up the losses of all labels and gives 0 where there '
            "is none. Divide by the labels of the whole window.",
        ),
        why="The window is the unit: it may be short, its batches may be unequal, and one "
        "may have no label at all; the sum over the count is right for all of them. "
        "`zero_grad` in front of it asks nothing of whoever ran before.",
        wrong=(
            Wrong(answers.whenever_full, "left without an update"),
            Wrong(answers.divided_by_steps, "what is it divided by"),
            Wrong(answers.mean_of_means, "one batch of all 26"),
            Wrong(answers.counted_by_rows, "how many of them have a label"),
            Wrong(answers.never_divided, "`backward` adds up, and a mean"),
            Wrong(answers.never_zeroed, "the first window's"),
            Wrong(answers.zeroed_in_the_gap, "the gradients were gone"),
            Wrong(answers.zeroed_only_after, "whose gradient was it"),
            Wrong(answers.all_together, "do not fit together"),
            Wrong(answers.returns_nothing, "is what is returned"),
        ),
        variants=(answers.accumulate_and_divide, answers.mean_times_count),
    )
]
