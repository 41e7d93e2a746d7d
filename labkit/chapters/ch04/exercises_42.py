"""The exercises of part 4.2: seeding the workers, and choosing their number."""

from collections.abc import Callable
from typing import Any

import torch

from labkit.chapters.ch04 import exercises_42b
from labkit.chapters.ch04 import worker_answers as answers
from labkit.chapters.ch04.worker_life import NAMES, Augmented, Draws, epoch
from labkit.lesson.exercise import Exercise, Wrong

Answer = Callable[..., Any]


def untouched(name: str) -> list[float]:
    """The first draws of a generator that nobody has seeded."""
    dataset = Augmented()
    place = NAMES.index(name)
    return [dataset[0][place] for _ in range(4)]


def workers_differ(answer: Answer) -> None:
    """two workers"""
    first, second = epoch(answer)
    for name in NAMES:
        if first[name] == second[name]:
            assert first[name] != untouched(name), (
                f"`{name}` is the generator that the dataset came with: seed the one that "
                "the worker's dataset holds, not another"
            )
            raise AssertionError(
                f"`{name}` draws {shown(first[name])} in worker 0, and the same in "
                "worker 1: what is different in the two?"
            )


def epochs_differ(answer: Answer) -> None:
    """two epochs"""
    first, second = epoch(answer), epoch(answer)
    for worker, (before, after) in enumerate(zip(first, second, strict=True)):
        for name in NAMES:
            assert before[name] != after[name], (
                f"`{name}` of worker {worker} draws {shown(before[name])} in epoch 1, and "
                "again in epoch 2: the number of the worker is the same in both, what is "
                "not?"
            )


def items_differ(answer: Answer) -> None:
    """the items of one worker"""
    for worker, draws in enumerate(epoch(answer)):
        for name in NAMES:
            assert len(set(draws[name])) > 1, (
                f"`{name}` draws {shown(draws[name])} in worker {worker}: each item of a "
                "worker gets the same number. Seed once, when the worker starts"
            )


def repeatable(answer: Answer) -> None:
    """the same run again"""
    first, second = (seeded(answer) for _ in range(2))
    for name in NAMES:
        assert first[0][name] == second[0][name], (
            f"after the same `torch.manual_seed(0)` `{name}` draws "
            f"{shown(first[0][name])} in one run and {shown(second[0][name])} in the "
            "next: which seed comes from torch's generator?"
        )


def seeded(answer: Answer) -> list[Draws]:
    torch.manual_seed(0)
    return epoch(answer)


def shown(draws: list[float]) -> str:
    return ", ".join(f"{value:.2f}" for value in draws)


WORKER_INIT = Exercise(
    id="4.2-worker-init",
    title="Random numbers for every worker",
    minutes=10,
    difficulty="medium",
    deliver="`seed_worker(worker_id)`, which seeds both generators of the worker's dataset",
    reference=answers.seed_worker,
    tests=(workers_differ, epochs_differ, items_differ, repeatable),
    hints=(
        "What does the worker have that is different in each worker and each epoch, and "
        "the same again after `torch.manual_seed`?",
        "`get_worker_info().seed` is such a number, and `get_worker_info().dataset` is "
        "the copy that this worker reads from.",
        "Both generators hang on that copy: `rng`, and `transform.rng`. Make both anew, "
        "with `np.random.default_rng(seed)` and `random.Random(seed)`.",
    ),
    why="The seed is the sum of the worker's number and of a base that the loader draws "
    "from torch's generator at the beginning of an epoch: so it differs in each worker "
    "and each epoch, and `torch.manual_seed` brings all of them back. It is the "
    "*worker's* dataset that is changed; yours never draws. With "
    "`persistent_workers=True` the function is called once, and the generators go on.",
    wrong=(
        Wrong(answers.all_alike, "what is different in the two?"),
        Wrong(answers.by_the_id_only, "the number of the worker is the same in both"),
        Wrong(answers.from_the_system, "which seed comes from torch's generator?"),
        Wrong(
            answers.global_ones_only, "`dataset.rng` is the generator that the dataset"
        ),
        Wrong(answers.for_every_item, "Seed once, when the worker starts"),
        Wrong(answers.transform_forgotten, "`transform.rng` is the generator that the"),
    ),
    variants=(answers.by_initial_seed, answers.from_the_global_ones),
)

EXERCISES = [*exercises_42b.EXERCISES, WORKER_INIT]
