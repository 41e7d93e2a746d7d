"""Every chapter keeps the contracts that pages rely on."""

import csv
import inspect
import itertools
import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from matplotlib.figure import Figure

from labkit.lesson.answer import TODO
from labkit.lesson.exercise import Exercise
from labkit.lesson.explore import Explorer, Words
from labkit.lesson.registry import chapter_list, chapters, find
from labkit.lesson.symptom import Symptom
from labkit.lesson.trap import Trap
from labkit.lesson.trial import subject, try_answer
from labkit.lesson.verdict import Claim

CLAIMS_FILE = Path(__file__).parents[1] / "data" / "claims.csv"
NAME = r"\d+(\.\d+)?-[a-z0-9]+(-[a-z0-9]+)*"
PICTURES = 40  # of an explorer whose grid is larger


def every(kind: str) -> list[Any]:
    return [item for number in chapters() for item in chapter_list(kind, number)]


def audited() -> dict[str, dict[str, str]]:
    with CLAIMS_FILE.open(encoding="utf-8", newline="") as file:
        return {row["claim"]: row for row in csv.DictReader(file)}


EXERCISES: list[Exercise] = every("exercise")
EXPLORERS: list[Explorer] = every("explorer")
TRAPS: list[Trap] = every("trap")
CLAIMS: list[Claim] = every("claim")
for_exercise = pytest.mark.parametrize("exercise", EXERCISES, ids=lambda e: e.id)
for_explorer = pytest.mark.parametrize("explorer", EXPLORERS, ids=lambda e: e.id)
for_trap = pytest.mark.parametrize("trap", TRAPS, ids=lambda t: t.slug)
for_claim = pytest.mark.parametrize("claim", CLAIMS, ids=lambda c: c.id)


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """As on a page.  Two threads on a busy machine wait for each other."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def test_there_is_something_to_test() -> None:
    assert chapters()
    assert len(EXERCISES) >= 5
    assert len(EXPLORERS) >= 2
    assert len(TRAPS) >= 20
    assert len(CLAIMS) >= 29


@pytest.mark.parametrize(
    ("kind", "field"),
    [
        ("exercise", "id"),
        ("explorer", "id"),
        ("claim", "id"),
        ("trap", "number"),
        ("trap", "slug"),
    ],
)
def test_names_are_used_once(kind: str, field: str) -> None:
    names = [getattr(item, field) for item in every(kind)]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("kind", ["exercise", "explorer", "claim", "trap"])
def test_everything_is_found_by_its_name(kind: str) -> None:
    for item in every(kind):
        names = [item.number, item.slug] if kind == "trap" else [item.id]
        assert all(find(kind, name) is item for name in names)


# --- exercises -----------------------------------------------------------------------


@for_exercise
def test_an_exercise_tells_what_it_is(exercise: Exercise) -> None:
    assert re.fullmatch(NAME, exercise.id)
    assert exercise.title
    assert exercise.minutes >= 1
    assert exercise.difficulty in ("easy", "medium", "hard")
    assert exercise.deliver
    assert "\n" not in exercise.deliver
    assert exercise.why
    assert inspect.getsource(exercise.reference)
    assert all(inspect.getdoc(test) for test in exercise.tests)


@for_exercise
def test_hints_begin_with_a_question(exercise: Exercise) -> None:
    assert exercise.hints
    assert all(hint.strip() for hint in exercise.hints)
    assert exercise.hints[0].endswith("?")


@for_exercise
def test_the_reference_passes(exercise: Exercise) -> None:
    result = exercise.run(exercise.reference)
    assert result.outcome == "passed", result.says


@for_exercise
def test_the_stub_is_not_attempted(exercise: Exercise) -> None:
    result = exercise.run(stub_of(exercise.reference))
    assert result.outcome == "todo", result.says


@for_exercise
def test_another_right_answer_passes(exercise: Exercise) -> None:
    assert exercise.variants
    for variant in exercise.variants:
        result = exercise.run(variant)
        assert result.outcome == "passed", (variant.__name__, result.says)


@for_exercise
def test_each_wrong_answer_gets_its_own_message(exercise: Exercise) -> None:
    assert len(exercise.wrong) >= 3
    messages = [wrong.message for wrong in exercise.wrong]
    assert len(set(messages)) == len(messages)
    for wrong in exercise.wrong:
        result = exercise.run(wrong.answer)
        assert result.outcome == "failed", (wrong.answer.__name__, result)
        own = [message for message in messages if message in result.says]
        assert own == [wrong.message], (wrong.answer.__name__, result.says)


@for_exercise
def test_each_test_rejects_a_wrong_answer(exercise: Exercise) -> None:
    for test in exercise.tests:
        outcomes = [
            try_answer(w.answer, exercise.reference, (test,), exercise.seconds).outcome
            for w in exercise.wrong
        ]
        assert "failed" in outcomes, f"no wrong answer fails at: {subject(test)}"


def stub_of(reference: Callable[..., Any]) -> Callable[..., Any]:
    """What the page gives to start from: the same parameters, and TODO."""
    if not inspect.isclass(reference):
        return signed(lambda *args, **kwargs: TODO, reference)
    methods: dict[str, Any] = {
        name: signed(lambda self, *args, **kwargs: TODO, method)
        for name, method in vars(reference).items()
        if inspect.isfunction(method) and not name.startswith("_")
    }

    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        if isinstance(self, torch.nn.Module):
            torch.nn.Module.__init__(self)

    if "__init__" in vars(reference):
        methods["__init__"] = signed(init, reference.__init__)
    return type(reference.__name__, reference.__bases__, methods)


def signed(stub: Any, original: Callable[..., Any]) -> Any:
    stub.__signature__ = inspect.signature(original)
    return stub


# --- traps and claims ------------------------------------------------------------------


@for_trap
def test_a_trap_asks_a_question_worth_asking(trap: Trap) -> None:
    assert isinstance(trap.symptom, Symptom)
    assert trap.symptom.kind
    assert trap.question.rstrip().endswith("?")
    assert len(trap.choices) >= 3
    assert all(choice.strip() for choice in trap.choices)
    replies = list(trap.choices.values())
    assert all(reply.strip() for reply in replies)
    assert len(set(replies)) == len(replies), "two choices get the same reply"


@for_trap
def test_a_traps_number_and_slug_belong_together(trap: Trap) -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+", trap.number)
    assert re.fullmatch(NAME, trap.slug)
    place = trap.slug.partition("-")[0]
    assert place in (trap.number.rpartition(".")[0], trap.number.partition(".")[0])


@for_trap
def test_a_trap_settles_claims_that_there_are(trap: Trap) -> None:
    known = audited()
    for claim in trap.claims:
        assert claim in known or re.fullmatch(r"E\d+\.\d+[a-z]?", claim), claim


@pytest.mark.parametrize("number", chapters())
def test_the_traps_of_a_part_are_counted_from_one(number: int) -> None:
    for part, traps in itertools.groupby(
        chapter_list("trap", number), key=lambda trap: trap.number.rpartition(".")[0]
    ):
        numbers = [trap.number for trap in traps]
        assert numbers == [f"{part}.{n}" for n in range(1, len(numbers) + 1)]


@pytest.mark.parametrize("number", chapters())
def test_a_chapter_judges_every_claim_of_its_section(number: int) -> None:
    rows = audited().values()
    section = [r["claim"] for r in rows if r["section"].split(".")[0] == str(number)]
    judged = [claim.id for claim in chapter_list("claim", number)]
    assert sorted(judged) == sorted(section)


@for_claim
def test_a_claim_is_judged_as_it_was_audited(claim: Claim) -> None:
    assert claim.judgement == audited()[claim.id]["audit"]
    assert claim.article.strip()
    assert claim.source == "" or claim.source.startswith("https://")
    if claim.judgement == "unmeasured":
        assert claim.source, "what is not measured here needs a source"


# --- explorers -----------------------------------------------------------------------


@for_explorer
def test_an_explorer_tells_what_it_shows_all_over_its_grid(explorer: Explorer) -> None:
    told = set()
    for number, values in enumerate(settings(explorer)):
        says = explorer.draw(Figure(figsize=explorer.size), **values)
        assert says.endswith("."), (values, says)
        told.add(says)
        if number % 5 == 0:  # layout and PNG take most of the time
            png, again = explorer.render(values)
            assert png.startswith(b"\x89PNG"), values
            assert len(png) > 1000, values
            assert again == says, values
    assert len(told) > 1, "the sentence never changes"


@for_explorer
def test_the_alternative_text_is_the_sentence(explorer: Explorer) -> None:
    data, metadata = explorer.bundle(explorer.start())
    assert metadata["image/png"]["alt"] == data["text/plain"]
    assert explorer.render(explorer.start())[1] == data["text/plain"]


@for_explorer
def test_an_explorers_controls_are_those_of_its_picture(explorer: Explorer) -> None:
    _, *drawn = inspect.signature(explorer.draw).parameters
    assert list(explorer.controls) == drawn
    assert set(explorer.labels) <= set(explorer.controls)
    for name, control in explorer.controls.items():
        assert control.start in control.tried, name
        assert not isinstance(control, Words) or control.examples, name


def settings(explorer: Explorer) -> list[dict[str, Any]]:
    """The whole grid where it is small; else each value once, and a seeded sample."""
    tried = {name: list(control.tried) for name, control in explorer.controls.items()}
    grid = itertools.product(*tried.values())
    few = list(itertools.islice(grid, PICTURES + 1))
    if len(few) <= PICTURES:
        return [dict(zip(tried, values, strict=True)) for values in few]
    start = explorer.start()
    once = [start | {name: value} for name, xs in tried.items() for value in xs]
    draw = random.Random(0)
    while len(once) < PICTURES:
        once.append({name: draw.choice(xs) for name, xs in tried.items()})
    return once
