"""The exercise of part 4.1: a cache that stands before the augmentation."""

import torch

from labkit.chapters.ch04 import cache_answers as answers
from labkit.chapters.ch04.cache_bench import (
    PHOTOS,
    Answer,
    Jitter,
    Reader,
    epoch,
    in_workers,
    item,
    made,
    paths,
    photo,
)
from labkit.lesson.exercise import Exercise, Wrong, given


def plain_items(answer: Answer) -> None:
    """five photos and no augmentation"""
    dataset = made(answer, Reader())
    length = given(dataset.__len__)
    assert length == PHOTOS, f"there are {PHOTOS} paths, and len() says {length}"
    for i, path in enumerate(paths()):
        got, expected = item(dataset, i), photo(path)
        near = got.shape == expected.shape and torch.allclose(got, expected, rtol=0.01)
        exact = near and torch.equal(got, expected)
        assert exact or not near, (
            f"item {i} should be load(paths[{i}]) to the last digit; it is off by "
            f"{(got - expected).abs().max():.0e}, as after a stay in another dtype"
        )
        assert near, (
            f"without an augmentation item {i} should be load(paths[{i}]) itself; "
            "something else came"
        )


def drawn_each_time(answer: Answer) -> None:
    """two epochs with a random augmentation"""
    jitter = Jitter()
    dataset = made(answer, Reader(), jitter)
    assert jitter.calls == 0, (
        f"augment ran {jitter.calls} times while the dataset was made, before any item was "
        "asked for: what it draws there is drawn once for all"
    )
    first, second = epoch(dataset), epoch(dataset)
    same = sum(torch.equal(a, b) for a, b in zip(first, second, strict=True))
    assert not same or jitter.calls == 2 * PHOTOS, (
        f"{same} of {PHOTOS} items of the second epoch are those of the first: augment ran "
        f"{jitter.calls} times in two epochs, so what it made has been kept"
    )
    assert not same, (
        f"{same} of {PHOTOS} items of the second epoch are those of the first, though "
        "augment ran for each: somebody sets the seed before it draws"
    )


def drawn_from_the_global_state(answer: Answer) -> None:
    """an item under seed 7, beside load and augment under seed 7"""
    dataset = made(answer, Reader(), Jitter())
    torch.manual_seed(7)
    got = item(dataset, 0)
    torch.manual_seed(7)
    assert torch.equal(got, Jitter()(photo(paths()[0]))), (
        "under one seed item 0 should be augment(load(paths[0])); another draw came, so "
        "that no seed repeats a run"
    )


def loaded_once(answer: Answer) -> None:
    """three epochs in one process"""
    load = Reader()
    dataset = made(answer, load, Jitter())
    for _ in range(3):
        epoch(dataset)
    assert sorted(load.asked) == sorted(paths()), (
        f"three epochs over {PHOTOS} photos in one process should load {PHOTOS} times; "
        f"load was called {len(load.asked)} times: nothing is kept"
    )


def loaded_once_with_workers(answer: Answer) -> None:
    """three epochs with two workers, each with a copy of the dataset"""
    load = Reader()
    dataset = made(answer, load, Jitter())
    in_workers(dataset, epochs=3)
    assert len(load.asked) == PHOTOS, (
        f"three epochs with two workers should load {PHOTOS} times; load was called "
        f"{len(load.asked)} times: a worker gets the dataset as it is when the epoch "
        "starts, and what it keeps is gone afterwards"
    )


def augment_may_write(answer: Answer) -> None:
    """an augmentation that writes into what it is given"""
    dataset = made(answer, Reader(), Jitter(in_place=True))
    for number in range(1, 4):
        torch.manual_seed(1)
        got = item(dataset, 2)
        torch.manual_seed(1)
        assert torch.equal(got, Jitter()(photo(paths()[2]))), (
            f"augment writes into its argument, and access {number} to item 2 starts from "
            "what the one before has left: give it a copy"
        )


def reader_may_write(answer: Answer) -> None:
    """a loop that writes into the item it was given"""
    dataset = made(answer, Reader())
    item(dataset, 1).zero_()
    assert torch.equal(item(dataset, 1), photo(paths()[1])), (
        "a loop wrote zeros into item 1, and the next access got the zeros: what is "
        "handed out is the kept tensor itself"
    )


EXERCISES = [
    Exercise(
        id="4.1-cache",
        title="Cache before augmenting",
        minutes=12,
        difficulty="medium",
        deliver="the class `CachedDataset(paths, load, augment=None)`: loads each path "
        "once, also with workers, and augments afresh at each access",
        reference=answers.CachedDataset,
        tests=(
            plain_items,
            drawn_each_time,
            drawn_from_the_global_state,
            loaded_once,
            loaded_once_with_workers,
            augment_may_write,
            reader_may_write,
        ),
        hints=(
            "Which part of the work is the same at every access, and who has to have done "
            "it before the workers start?",
            "`__init__` runs in the main process, before any worker has its copy of the "
            "dataset: load there. `__getitem__` does what is random.",
            "The kept tensor must never leave: `self.x[i].clone()` goes to `augment`, and "
            "without `augment` to the caller.",
        ),
        why=(
            "All photos lie in one tensor that is full before the first worker starts, so "
            "there is nothing left to fill and nothing to lose. Forked workers read the "
            "same memory, others get it as shared memory. The clone costs a copy of one "
            "photo and makes both the augmentation and the caller harmless."
        ),
        wrong=(
            Wrong(answers.CacheAfterTransform, "so what it made has been kept"),
            Wrong(answers.AugmentedInInit, "times while the dataset was made"),
            Wrong(answers.NeverCached, "times: nothing is kept"),
            Wrong(answers.FilledOnDemand, "what it keeps is gone afterwards"),
            Wrong(
                answers.HandsOutTheCache, "what is handed out is the kept tensor itself"
            ),
            Wrong(answers.AugmentsTheCache, "starts from what the one before has left"),
            Wrong(answers.SeededByIndex, "somebody sets the seed before it draws"),
            Wrong(answers.SeededByTheClock, "another draw came"),
            Wrong(answers.InHalf, "as after a stay in another dtype"),
            Wrong(answers.AlwaysAugments, "something else came"),
            Wrong(answers.OpenEnded, "paths, and len() says"),
        ),
        variants=(answers.AsArray, answers.AsList),
    ),
]
