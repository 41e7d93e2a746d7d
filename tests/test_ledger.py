"""The evidence: what is read back from a page, and what is missed."""

from types import SimpleNamespace

import ledger
from ledger import Chapter
from nbformat.v4 import new_code_cell, new_notebook, new_output

ALWAYS = {"torch": "2.13.0", "device": "cpu", "labkit": "0.1.0"}
TRAP = {
    "trap": "2.1-x",
    "kind": "raises",
    "claims": ["C2.1a"],
    "shown": True,
    "fixed": True,
    "observed": "ValueError: x",
    "measured": {},
    "simulated": False,
    **ALWAYS,
}
PREDICTION = {"prediction": "2.1-x", "choices": 3, **ALWAYS}
CLAIM = {"claim": "C2.1a", "verdict": "holds", "measured": {"same": True}, **ALWAYS}
EXERCISE = {
    "exercise": "2.1-e",
    "outcome": "passed",
    "minutes": 5,
    "difficulty": "easy",
    **ALWAYS,
}
EXPLORER = {"explorer": "2.1-s", "controls": ["shape"], **ALWAYS}
ALL = [PREDICTION, TRAP, CLAIM, EXERCISE, EXPLORER]
CHAPTER = Chapter(
    traps={"2.1-x": SimpleNamespace(core=True)},
    claims={"C2.1a": None},
    exercises={"2.1-e": None},
    explorers={"2.1-s": None},
)


def page(*records):
    """A page with one output for each record."""
    outputs = [
        new_output("display_data", {"text/markdown": "x"}, metadata={"labkit": [r]})
        for r in records
    ]
    return new_notebook(cells=[new_code_cell("x", outputs=outputs)])


def test_a_complete_page_has_no_problems():
    complete = page(*ALL)
    assert ledger.form_problems(complete) == []
    assert ledger.missing_or_extra(complete, CHAPTER) == []
    assert ledger.unsolved(complete) == []


def test_each_missing_record_is_named():
    for record in ALL[1:]:
        kind = next(iter(record))
        rest = [other for other in ALL if other is not record]
        found = ledger.missing_or_extra(page(*rest), CHAPTER)
        assert found == [f"{kind} {record[kind]} is not on the page"]


def test_a_core_trap_is_predicted():
    found = ledger.missing_or_extra(page(*ALL[1:]), CHAPTER)
    assert found == ["the core trap 2.1-x is not predicted before it is run"]


def test_each_record_too_many_is_named():
    extra = {**TRAP, "trap": "2.1-y"}
    guess = {**PREDICTION, "prediction": "2.1-z"}
    found = ledger.missing_or_extra(page(*ALL, extra, guess, CLAIM), CHAPTER)
    assert found == [
        "trap 2.1-y is not in the chapter",
        "the prediction 2.1-z is not in the chapter",
        "claim C2.1a is judged 2 times",
    ]


def test_the_last_record_of_an_id_counts():
    first = {**TRAP, "shown": None, "fixed": None}
    assert ledger.unsolved(page(first, TRAP)) == []
    assert ledger.unsolved(page(TRAP, first)) == [
        "trap 2.1-x: shown is None, not True",
        "trap 2.1-x: fixed is None, not True",
    ]


def test_an_open_exercise_is_named():
    found = ledger.unsolved(page({**EXERCISE, "outcome": "todo"}))
    assert found == ["exercise 2.1-e: todo, not passed"]


def test_the_form_of_a_record_is_checked():
    without = {name: value for name, value in TRAP.items() if name != "torch"}
    cases = {
        "lacks torch": without,
        "unknown field colour": {**TRAP, "colour": "red"},
        "has shown='yes'": {**TRAP, "shown": "yes"},
        "of one kind": {**TRAP, "claim": "C2.1a"},
    }
    for says, record in cases.items():
        found = ledger.form_problems(page(record))
        assert len(found) == 1
        assert says in found[0]
