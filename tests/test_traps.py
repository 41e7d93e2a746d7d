"""predict, trap, fix and verdicts on a chapter made for the test."""

import io
import json
import sys

import pytest
import torch
from page import showing

import labkit as lk
from labkit.lesson import registry, session
from labkit.lesson.evidence import LabError
from labkit.lesson.symptom import silent
from labkit.lesson.trap import Trap, choice_buttons, prediction
from labkit.lesson.verdict import Claim

TRAP = Trap(
    "3.1.1",
    "3.1-test",
    silent(lambda value: value == 100, "it changed"),
    "What comes?",
    {"`100`": "Right: it is shared.", "`1`": "A copy would.", "nothing": "It runs."},
    claims=("C3.1a",),
)
CLAIMS = [
    Claim("C3.1a", "holds", "One | two.", "got {got}", lambda m: m["got"] == 1),
    Claim("C3.1b", "wrong", "Two.", lambda m: f"{m['x']:.1f}", lambda m: m["x"] > 2),
]


@pytest.fixture(autouse=True)
def chapter(monkeypatch, tmp_path):
    made = {"trap": [TRAP], "claim": CLAIMS}
    monkeypatch.setattr(registry, "chapter_list", lambda kind, n: made.get(kind, []))
    monkeypatch.setattr(session, "_session", session.Session())
    monkeypatch.setenv("LABKIT_HOME", str(tmp_path))
    monkeypatch.delenv("LABKIT_STRICT", raising=False)


def test_predict_asks_and_reveals_nothing():
    with showing() as page:
        lk.predict("3.1.1")
    assert "What comes?" in page.text
    assert "Right" not in page.text
    assert "it changed" not in page.text
    assert page.text.strip().endswith("1. `100`\n2. `1`\n3. nothing")
    (record,) = page.records
    assert record["prediction"] == "3.1-test"
    assert record["choices"] == 3
    widgets = [o for o in page.outputs if "text/plain" not in o.data]
    assert len(widgets) == 1


@pytest.mark.parametrize(
    ("answer", "mark"),
    [(1, "✓ You said “`100`”. Right"), ("noth", "✗ You said “nothing”")],
)
def test_a_prediction_is_kept_and_answered(answer, mark):
    with showing() as page:
        lk.predict("3.1.1", answer)
        lk.trap("3.1.1", lambda: 100)
    assert mark in page.text


def test_a_prediction_survives_the_kernel(monkeypatch):
    with showing():
        lk.predict("3.1.1", 2)
    monkeypatch.setattr(session, "_session", session.Session())
    assert prediction(TRAP) == "`1`"


def test_a_click_is_a_prediction():
    with showing():
        box = choice_buttons(TRAP)
        box.children[0].click()
    assert prediction(TRAP) == "`100`"
    assert "Noted: 1" in box.children[-1].value


def test_trap_then_fix():
    with showing() as page:
        lk.trap("3.1.1", lambda: 100)
        lk.fix("3.1-test", lambda: 1)
    assert "**No error, and wrong** · it changed: `100`" in page.text
    assert "| fixed | `1` |" in page.text
    first, last = page.records
    assert (first["shown"], first["fixed"]) == (True, None)
    assert (last["shown"], last["fixed"]) == (True, True)
    assert last["measured"] == {"value": 100, "fixed_value": 1}
    assert last["claims"] == ["C3.1a"]
    assert last["kind"] == "silent"
    assert {"torch", "device", "labkit"} <= last.keys()


def test_evidence_is_strict_json():
    with showing() as page:
        lk.verdicts(C3_1b={"x": float("inf"), "y": float("nan")})
    json.dumps(page.records, allow_nan=False)
    assert page.records[0]["measured"] == {"x": "inf", "y": "nan"}


def test_short_form_shows_both():
    with showing() as page:
        lk.trap("3.1.1", lambda: 100, lambda: 1)
    assert page.records[-1]["fixed"] is True


def test_a_trap_that_no_longer_shows_says_so_kindly(monkeypatch):
    with showing() as page:
        lk.trap("3.1.1", lambda: 1)
    assert "no longer shows: you fixed it, or your PyTorch did" in page.text
    assert page.records[-1]["shown"] is False
    monkeypatch.setenv("LABKIT_STRICT", "1")
    with pytest.raises(AssertionError, match=r"3\.1-test does not show"), showing():
        lk.trap("3.1.1", lambda: 1)


def test_a_fix_that_does_not_fix(monkeypatch):
    with showing() as page:
        lk.trap("3.1.1", lambda: 100, lambda: 100)
        lk.trap("3.1.1", lambda: 100, lambda: 1 / 0)
    assert "Not fixed yet: it still shows" in page.text
    assert "your code stopped before it could be judged" in page.text
    monkeypatch.setenv("LABKIT_STRICT", "1")
    with pytest.raises(AssertionError, match="fixed False"), showing():
        lk.trap("3.1.1", lambda: 100, lambda: 100)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (
            lambda: lk.trap("3.1.9", lambda: 1),
            "there is no trap '3.1.9'; the nearest: 3.1",
        ),
        (lambda: lk.trap(3.1, lambda: 1), "called by its id as a string"),
        (
            lambda: lk.trap("3.1.1", torch.ones(2)),
            "broken is a function without arguments",
        ),
        (lambda: lk.fix("3.1.1", 3), "fixed is a function without arguments"),
        (lambda: lk.fix("3.1.1", lambda: 1), "nothing to compare with yet"),
        (lambda: lk.predict("3.1.1", 7), "answer is a number from 1 to 3"),
        (lambda: lk.predict("3.1.1", "no such"), "answer is a number from 1 to 3"),
        (lambda: lk.verdicts(C3_1x={}), "there is no claim 'C3.1x'"),
        (lambda: lk.verdicts(C3_1a=3), "takes a dict of measured values"),
        (lambda: lk.verdicts(C3_1a={"other": 1}), "needs the value 'got'"),
    ],
)
def test_bad_input_is_one_sentence_and_the_page_goes_on(call, says, monkeypatch):
    with showing() as page:
        call()
    assert says in page.text
    assert "\n" not in page.text
    monkeypatch.setenv("LABKIT_STRICT", "1")
    with pytest.raises(LabError, match=says[:20]), showing():
        call()


def test_verdicts_are_judged_by_the_values(monkeypatch):
    with showing() as page:
        lk.verdicts(C3_1a={"got": 1}, C3_1b={"x": 2.345})
    assert "| One \\| two. | **holds** | got 1 |" in page.text
    assert "| Two. | **wrong** | 2.3 |" in page.text
    assert [r["verdict"] for r in page.records] == ["holds", "wrong"]
    assert page.records[0]["measured"] == {"got": 1}
    with showing() as page:
        lk.verdicts(C3_1b={"x": 1.0})
    assert "measured otherwise" in page.text
    monkeypatch.setenv("LABKIT_STRICT", "1")
    with pytest.raises(AssertionError, match=r"C3\.1b is judged 'wrong'"), showing():
        lk.verdicts(C3_1b={"x": 1.0})


def test_outside_a_notebook_it_prints(capsys):
    lk.predict("3.1.1", 1)
    lk.trap("3.1.1", lambda: 100, lambda: 1)
    out = capsys.readouterr().out
    assert "No error, and wrong · it changed: 100" in out
    assert "fixed · 1" in out
    assert "**" not in out


def test_an_unknown_judgement_is_refused():
    with pytest.raises(LabError, match="judgement is one of holds"):
        Claim("C1", "true", "", "", bool)


class Unreadable:
    def __repr__(self):
        raise ZeroDivisionError


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: lk.trap(), "trap takes (id, broken, fixed): missing a required"),
        (lambda: lk.fix("3.1.1", fixd=print), "fix takes (id, fixed): missing"),
        (lambda: lk.explore("3.1-x", 2), "explore takes (id): too many"),
        (lambda: lk.check("3.1-x"), "check takes (id, answer): missing"),
        (lambda: lk.verdicts("C3_1a"), "verdicts takes (measured): too many"),
        (lambda: lk.trap(Unreadable(), print), "Unreadable whose repr raised"),
        (lambda: lk.predict("9" * 5000), "there is no trap '9999"),
        (lambda: lk.predict("3.1.1", Unreadable()), "start of a choice; <Unreadable"),
        (lambda: lk.progress(Unreadable()), "progress: chapter is one of"),
        (lambda: lk.progress(2.0), "progress: chapter is one of"),
        (lambda: lk.setup(2, seed=-1), "from 0 to 4294967295; -1 came"),
        (lambda: lk.setup(2, budget=Unreadable()), "'quick' or 'full'; <Unreadable"),
        (lambda: lk.verdicts(C3_1b={"x": "y"}), "C3.1b cannot be judged by {'x': 'y'}"),
        (lambda: lk.verdicts(C3_1b={1: 2}), "needs the value 'x', and got 1"),
    ],
)
def test_arguments_that_cannot_be_used_are_told_in_a_sentence(call, says):
    with showing() as page:
        assert call() is None
    assert says in page.text
    assert len(page.text) < 400


def test_without_ipywidgets_the_question_says_how_to_answer(monkeypatch):
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    with showing() as page:
        lk.predict("3.1.1")
        lk.predict("3.1.1", 1)
    assert '`lk.predict("3.1.1", 1)`' in page.text
    assert "Noted." in page.text


def test_setup_goes_on_without_matplotlib(monkeypatch):
    monkeypatch.setitem(sys.modules, "ipykernel", sys)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    session.style_figures()  # an ImportError here would stop the page at its first cell


def test_a_narrow_encoding_prints_question_marks(monkeypatch):
    bytes_out = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(bytes_out, "ascii"))
    lk.predict("3.1.1")
    sys.stdout.flush()
    assert b"Predict ? What comes?" in bytes_out.getvalue()
