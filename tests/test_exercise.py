"""Exercises: the four outcomes, every kind of bad answer, hints and solutions."""

import linecache
import random
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from labkit.lesson import exercise as page
from labkit.lesson import progress, session
from labkit.lesson.answer import TODO, describe, fingerprint, given
from labkit.lesson.evidence import LabError
from labkit.lesson.exercise import Exercise
from labkit.lesson.session import Session
from labkit.lesson.trial import Result, try_answer


def double(values: Any) -> Any:
    return [2 * value for value in values]


def doubles(answer: Callable[..., Any]) -> None:
    """the values, doubled"""
    got = given(answer, [1, 2])
    assert got == [2, 4], f"[2, 4] is right, {got} came out"


def of_nothing(answer: Callable[..., Any]) -> None:
    """an empty list"""
    got = given(answer, [])
    assert len(got) == 0, f"nothing doubled is nothing, {got} came out"


class Scale(torch.nn.Module):
    def __init__(self, factor: float = 2.0) -> None:
        super().__init__()
        self.factor = factor

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.factor


def scales(answer: Callable[..., Any]) -> None:
    """the input, scaled"""
    got = given(given(answer, 3.0), torch.ones(2))
    assert torch.equal(got, torch.full((2,), 3.0)), f"3, 3 is right, {got} came out"


def exercise_of(reference: Callable[..., Any], *tests: Any, **more: Any) -> Exercise:
    return Exercise(
        id="2.1-double",
        title="Twice",
        minutes=3,
        difficulty="easy",
        deliver="a list of the values, doubled",
        reference=reference,
        tests=tests,
        hints=("What is twice two?", "Multiply."),
        why="A list of new values leaves the old one alone.",
        wrong=(),
        variants=(),
        **more,
    )


DOUBLE = exercise_of(double, doubles, of_nothing, seconds=0.5)
SCALE = exercise_of(Scale, scales)


@pytest.fixture(autouse=True)
def fresh_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """A session of its own, and a page whose only exercise is DOUBLE."""
    monkeypatch.setattr(session, "_session", Session(2))
    monkeypatch.setattr(page, "find", lambda kind, name: DOUBLE)


def typed(source: str) -> Callable[..., Any]:
    """The function that a notebook cell with this source defines."""
    name = f"<ipython-input-1-{abs(hash(source))}>"
    lines = source.splitlines(keepends=True)
    linecache.cache[name] = (len(source), None, lines, name)
    space: dict[str, Any] = {"TODO": TODO, "torch": torch, "np": np, "sys": sys}
    exec(compile(source, name, "exec"), space)
    return space["double"]


# --- the outcomes -------------------------------------------------------------------


def test_passed() -> None:
    result = DOUBLE.run(
        typed("def double(values):\n    return [v + v for v in values]")
    )
    assert (result.outcome, result.says) == ("passed", "2 tests")


def test_not_yet_says_which_test_what_came_out_and_what_was_expected() -> None:
    result = DOUBLE.run(lambda values: values * 2)
    assert result.outcome == "failed"
    assert result.says.startswith("the values, doubled: [2, 4] is right, [1, 2, 1, 2]")
    assert "It returned `[1, 2, 1, 2]` for `values = [1, 2]`." in result.says


def test_raised_says_error_line_and_arguments() -> None:
    result = DOUBLE.run(
        typed("def double(values):\n    # twice\n    return values / 2")
    )
    assert result.outcome == "raised"
    assert "`TypeError: unsupported operand type(s) for /: 'list' and 'int'`" in (
        result.says
    )
    assert (
        "In line 3, `return values / 2`, called with `values = [1, 2]`." in result.says
    )


def test_an_error_in_a_helper_of_the_library_is_told_by_the_learners_line() -> None:
    source = "def double(values):\n    return torch.stack(values)"
    assert "In line 2, `return torch.stack(values)`" in DOUBLE.run(typed(source)).says


def test_the_learners_own_assert_is_raised_and_not_a_failed_test() -> None:
    result = DOUBLE.run(typed("def double(values):\n    assert len(values) > 5"))
    assert result.outcome == "raised"
    assert "In line 2, `assert len(values) > 5`" in result.says


@pytest.mark.parametrize(
    "body",
    [
        "return TODO",
        "return [TODO, 1]",
        "return {'a': TODO}",
        "return TODO + 1",
        "return TODO.shape",
        "return torch.exp(TODO)",
        "a, b = TODO",
        "return [v * TODO for v in values]",
    ],
)
def test_a_stub_is_not_attempted(body: str) -> None:
    result = DOUBLE.run(typed(f"def double(values):\n    {body}"))
    assert result.outcome == "todo"


def test_a_test_that_catches_exceptions_does_not_swallow_the_stub() -> None:
    def refuses(answer: Callable[..., Any]) -> None:
        """what is not a list"""
        try:
            given(answer, 3)
        except Exception as error:
            raise AssertionError("it did not raise") from error

    assert exercise_of(double, refuses).run(lambda values: TODO).outcome == "todo"


def test_a_missing_return_is_told_apart_from_a_stub() -> None:
    result = DOUBLE.run(typed("def double(values):\n    [2 * v for v in values]"))
    assert result.outcome == "failed"
    assert "It returned `None` for `values = [1, 2]`: is a `return` missing?" in (
        result.says
    )


def test_a_result_that_the_test_cannot_use_is_no_error_of_the_page() -> None:
    right_then_none = typed(
        "def double(values):\n    if values:\n        return [2 * v for v in values]"
    )
    result = DOUBLE.run(right_then_none)
    assert result.outcome == "failed"
    assert result.says.startswith("an empty list: the test could not use what came out")
    assert "is a `return` missing?" in result.says


def test_an_assert_without_a_message_shows_its_line() -> None:
    def bare(answer: Callable[..., Any]) -> None:
        """the first value"""
        got = given(answer, [1])
        if got[0] != 2:
            raise AssertionError

    result = exercise_of(double, bare).run(lambda values: values)
    assert "`raise AssertionError` does not hold" in result.says


# --- the wrong kind of thing ---------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (None, "by its name and not called; `None` (NoneType) came"),
        ([2, 4], "by its name and not called; `[2, 4]` (list) came"),
        (torch.ones(1), "by its name and not called; `tensor([1.])` (Tensor) came"),
        ("double", "by its name and not called; `'double'` (str) came"),
        (Scale, "a function is expected, and the class `Scale` came"),
    ],
)
def test_wrong_kinds_where_a_function_is_expected(answer: Any, says: str) -> None:
    result = DOUBLE.run(answer)
    assert result.outcome == "failed"
    assert says in result.says


@pytest.mark.parametrize(
    ("answer", "came"),
    [(Scale(), "`Scale()` (Scale)"), (double, "(function)"), (None, "`None`")],
)
def test_wrong_kinds_where_a_class_is_expected(answer: Any, came: str) -> None:
    result = SCALE.run(answer)
    assert result.outcome == "failed"
    assert result.says.startswith("the class itself is expected")
    assert came in result.says


@pytest.mark.parametrize(
    ("source", "yours"),
    [
        ("def double(numbers): return TODO", "(numbers)"),
        ("def double(): return TODO", "()"),
        ("def double(values, n): return TODO", "(values, n)"),
        ("def double(*values): return TODO", "(*values)"),
        ("def double(values=None): return TODO", "(values=None)"),
    ],
)
def test_wrong_parameters_are_told_even_of_a_stub(source: str, yours: str) -> None:
    result = DOUBLE.run(typed(source))
    assert result.outcome == "failed"
    assert result.says == f"the parameters are `(values)`, yours are `{yours}`"


def test_annotations_are_the_learners_own() -> None:
    source = "def double(values: list) -> list:\n    return [2 * v for v in values]"
    assert DOUBLE.run(typed(source)).outcome == "passed"


def test_a_builtin_without_a_signature_is_told() -> None:
    result = DOUBLE.run(torch.add)
    assert result.outcome == "failed"
    assert "write a function of your own" in result.says


# --- classes -------------------------------------------------------------------------


class ScaleStub(torch.nn.Module):
    def __init__(self, factor: float = 2.0) -> None:
        super().__init__()

    def forward(self, x: torch.Tensor) -> Any:
        return TODO


class ScaleUnfinished(torch.nn.Module):
    def __init__(self, factor: float = 2.0) -> None:
        super().__init__()
        self.factor = TODO

    def forward(self, x: torch.Tensor) -> Any:
        return x * self.factor


class ScaleTwice(Scale):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return 2 * super().forward(x)


class NoForward(torch.nn.Module):
    def __init__(self, factor: float = 2.0) -> None:
        super().__init__()


class OtherForward(NoForward):
    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return inputs


class ForgotSuper(torch.nn.Module):
    def __init__(self, factor: float = 2.0) -> None:
        self.layer = torch.nn.Linear(1, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x


@pytest.mark.parametrize(
    ("answer", "outcome", "says"),
    [
        (Scale, "passed", "1 test"),
        (ScaleStub, "todo", ""),
        (ScaleUnfinished, "todo", ""),
        (ScaleTwice, "failed", "3, 3 is right, tensor([6., 6.]) came out"),
        (NoForward, "failed", "the method `forward(self, x)` is missing"),
        (OtherForward, "failed", "of `forward` are `(self, x)`, yours are `(self, inp"),
        (ForgotSuper, "raised", "cannot assign module before Module.__init__() call"),
    ],
)
def test_a_class_as_the_answer(answer: type, outcome: str, says: str) -> None:
    result = SCALE.run(answer)
    assert result.outcome == outcome
    assert says in result.says


def test_the_line_of_a_method_is_told() -> None:
    assert "`self.layer = torch.nn.Linear(1, 1)`" in SCALE.run(ForgotSuper).says


# --- answers that run wild -------------------------------------------------------------


def test_recursion_is_told_in_one_line() -> None:
    result = DOUBLE.run(typed("def double(values):\n    return double(values)"))
    assert result.outcome == "raised"
    assert "RecursionError: maximum recursion depth exceeded" in result.says
    assert len(result.says) < 300


def test_sys_exit_is_caught() -> None:
    result = DOUBLE.run(typed("def double(values):\n    sys.exit()"))
    assert result.outcome == "raised"
    assert "`SystemExit`: an answer returns, it does not end the program" in result.says


@pytest.mark.parametrize(
    "body",
    [
        "while True: pass",
        "while True: print('x' * 1000)",
        "while True:\n        try: np.ones(3).sum()\n        except Exception: pass",
    ],
)
def test_an_endless_answer_is_stopped(
    body: str, capsys: pytest.CaptureFixture[str]
) -> None:
    result = DOUBLE.run(typed(f"def double(values):\n    {body}"))
    assert result.outcome == "raised"
    assert "it was stopped after 0.5 s without an end" in result.says
    assert "called with `values = [1, 2]`" in result.says
    printed = capsys.readouterr().out
    assert len(printed.encode()) < 4200
    assert ("… output cut at 4 kB" in printed) == ("print" in body)


def test_an_interrupt_passes_through() -> None:
    def interrupted(values: Any) -> Any:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        DOUBLE.run(interrupted)


def test_what_an_answer_switches_is_put_back() -> None:
    before = torch.get_default_dtype(), torch.is_grad_enabled(), random.getstate()

    def switches(values: Any) -> Any:
        torch.set_default_dtype(torch.float64)
        torch.set_grad_enabled(False)
        random.random()
        return double(values)

    assert DOUBLE.run(switches).outcome == "passed"
    assert (torch.get_default_dtype(), torch.is_grad_enabled()) == before[:2]
    assert random.getstate() == before[2]


def test_every_test_starts_from_the_same_seed() -> None:
    drawn = []

    def draws(answer: Callable[..., Any]) -> None:
        """anything"""
        drawn.append((random.random(), np.random.rand(), torch.rand(1).item()))

    torch.manual_seed(random.randrange(1000))
    exercise_of(double, draws, draws).run(double)
    assert drawn[0] == drawn[1]


# --- given ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "change"),
    [
        (torch.arange(4.0), lambda x: x.add_(1)),
        (torch.arange(4.0), lambda x: x.data.mul_(2)),
        (torch.arange(4.0), lambda x: x.numpy().fill(7)),
        (torch.arange(4.0), lambda x: x[1:].zero_()),
        (torch.arange(4.0), lambda x: x.requires_grad_()),
        (torch.arange(4.0), lambda x: x.t_() if x.ndim > 1 else x.unsqueeze_(0)),
        (torch.arange(6.0).view(2, 3).t(), lambda x: x.neg_()),
        (torch.ones(3, dtype=torch.bfloat16), lambda x: x.zero_()),
        (torch.eye(2).to_sparse(), lambda x: x.zero_()),
        (np.arange(4), lambda x: x.sort() or x.__imul__(3)),
        (np.arange(6).reshape(2, 3).T, lambda x: x.fill(1)),
        (np.array(["a", None], dtype=object), lambda x: x.fill("b")),
        ([1, 2], lambda x: x.append(3)),
        ([1, [2, 3]], lambda x: x[1].pop()),
        ([torch.ones(2)], lambda x: x[0].zero_()),
        ({"a": 1}, lambda x: x.update(b=2)),
        ({1, 2}, lambda x: x.clear()),
    ],
    ids=lambda value: type(value).__name__ if not callable(value) else "",
)
def test_a_changed_argument_is_named(value: Any, change: Callable[[Any], Any]) -> None:
    def answer(first: Any, rows: Any) -> int:
        change(rows)
        return 1

    with pytest.raises(AssertionError, match="changed its argument `rows`"):
        given(answer, 0, value)


def test_an_answer_that_changes_its_argument_fails_the_exercise() -> None:
    def in_place(values: Any) -> Any:
        for n, value in enumerate(values):
            values[n] = 2 * value
        return values

    result = DOUBLE.run(in_place)
    assert result.outcome == "failed"
    assert "your code changed its argument `values`" in result.says
    # the arguments are told as they came, not as they are now
    assert "for `values = [1, 2]`" in result.says


def test_what_may_change_may() -> None:
    def fill(out: torch.Tensor, value: float) -> torch.Tensor:
        return out.fill_(value)

    assert given(fill, torch.zeros(2), 1.0, may_change=("out",)).sum() == 2


def test_a_model_is_the_answers_to_change() -> None:
    def step(model: Any, x: torch.Tensor) -> float:
        model(x).sum().backward()
        with torch.no_grad():
            model.weight -= 0.1 * model.weight.grad
        return 1.0

    assert given(step, torch.nn.Linear(2, 1), torch.ones(1, 2)) == 1.0


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ([1, 2], "[1, 2]"),
        (torch.ones(2), "tensor([1., 1.])"),
        (torch.ones(3, 4), "float32 tensor of shape (3, 4)"),
        (torch.ones(2, device="meta"), "float32 tensor of shape (2,) on meta"),
        (np.zeros((3, 4)), "float64 array of shape (3, 4)"),
        ([np.zeros((2, 8))] * 3, "list of 3: float64 array of shape (2, 8)"),
        (
            (torch.ones(30), [1] * 40),
            "tuple of 2: float32 tensor of shape (30,), list of 40: 1",
        ),
        (torch.nn.Linear(2, 1), "a Linear"),
        (torch.relu, "relu"),
    ],
)
def test_values_are_told_in_a_few_words(value: Any, said: str) -> None:
    assert describe(value) == said


def test_the_gradient_of_an_argument_is_no_change() -> None:
    def answer(x: torch.Tensor) -> torch.Tensor:
        x.sum().backward()
        return x.grad

    assert given(answer, torch.ones(2, requires_grad=True)).sum() == 2


def test_looking_for_changes_allocates_no_tensor() -> None:
    from torch.utils._python_dispatch import TorchDispatchMode

    class Count(TorchDispatchMode):
        calls = 0

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
            Count.calls += 1
            return func(*args, **(kwargs or {}))

    large = torch.ones(100_000)
    with Count():
        fingerprint(large)
    assert Count.calls == 0


def test_nan_is_not_taken_for_a_change() -> None:
    assert given(lambda x: 1, torch.tensor([float("nan")])) == 1


def test_fake_and_empty_tensors_can_be_given() -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        assert given(lambda x: tuple(x.shape), torch.empty(3)) == (3,)
    assert given(lambda x: x.numel(), torch.empty(0)) == 0
    assert given(lambda x: x.device.type, torch.empty(2, device="meta")) == "meta"


# --- check, hint, solution -------------------------------------------------------------


def recorded() -> dict[tuple[str, str], str]:
    return progress.latest("exercise")


def test_check_gives_back_what_later_cells_can_use(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def mine(values: Any) -> Any:
        return [value + value for value in values]

    assert page.check("2.1-double", mine) is mine
    assert "✓ passed · 2.1-double · 2 tests" in capsys.readouterr().out
    assert page.check("2.1-double", lambda values: values) is double
    assert "✗ not yet · 2.1-double" in capsys.readouterr().out
    assert page.check("2.1-double", lambda values: 1 / 0) is double
    assert "! your code raised · 2.1-double" in capsys.readouterr().out


def test_a_stub_is_told_minutes_difficulty_and_what_to_deliver(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert page.check("2.1-double", lambda values: TODO) is double
    told = capsys.readouterr().out
    assert "○ not attempted · 2.1-double Twice · 3 minutes, easy" in told
    assert "To deliver: a list of the values, doubled" in told
    assert 'lk.hint("2.1-double") helps' in told
    assert recorded() == {}


def test_the_evidence_of_a_check(monkeypatch: pytest.MonkeyPatch) -> None:
    records: list[Any] = []
    monkeypatch.setattr(page, "say", lambda text, *more: records.extend(more))
    page.check("2.1-double", lambda values: 3)
    assert records == [
        {
            "exercise": "2.1-double",
            "outcome": "failed",
            "minutes": 3,
            "difficulty": "easy",
        }
    ]


def test_the_reference_that_came_back_is_not_an_answer(
    capsys: pytest.CaptureFixture[str],
) -> None:
    back = page.check("2.1-double", lambda values: TODO)
    page.check("2.1-double", back)
    told = capsys.readouterr().out
    assert "This is the reference that the last check handed back." in told
    assert "✓" not in told


def test_todo_itself_is_not_attempted(capsys: pytest.CaptureFixture[str]) -> None:
    assert page.check("2.1-double", TODO) is double
    assert "○ not attempted" in capsys.readouterr().out


def test_attempts_are_recorded() -> None:
    page.check("2.1-double", lambda values: 3)
    assert recorded() == {("exercise", "2.1-double"): "failed"}
    page.check("2.1-double", lambda values: [2 * value for value in values])
    assert recorded() == {("exercise", "2.1-double"): "passed"}


def test_solve_runs_the_reference_through_the_tests_and_keeps_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(session, "_session", Session(2, solve=True))
    assert page.check("2.1-double", lambda values: TODO) is double
    assert "✓ passed · 2.1-double · reference · 2 tests" in capsys.readouterr().out
    assert recorded() == {}


def test_solve_is_no_shortcut(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = exercise_of(lambda values: values, doubles)
    monkeypatch.setattr(session, "_session", Session(2, solve=True))
    monkeypatch.setattr(page, "find", lambda kind, name: broken)
    page.check("2.1-double", double)
    assert "✗ not yet" in capsys.readouterr().out


def test_an_unknown_exercise_is_told_and_the_page_goes_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def find(kind: str, id: str) -> Any:
        raise LabError(f"there is no {kind} {id!r}; the nearest: 2.1-double")

    monkeypatch.setattr(page, "find", find)
    assert page.check("2.1-dobule", double) is double
    assert "the nearest: 2.1-double" in capsys.readouterr().out
    monkeypatch.setenv("LABKIT_STRICT", "1")
    with pytest.raises(LabError, match=r"no exercise '2\.1-dobule'"):
        page.check("2.1-dobule", double)


def test_hints_come_one_at_a_time(capsys: pytest.CaptureFixture[str]) -> None:
    told = []
    for _ in range(3):
        page.hint("2.1-double")
        told.append(capsys.readouterr().out)
    assert told[0] == "Hint 1 of 2 · What is twice two?\n"
    assert told[1].startswith("Hint 2 of 2 · Multiply.\n")
    assert 'lk.solution("2.1-double") shows an answer' in told[1]
    assert told[2] == told[1]


def test_the_solution_is_shown_after_an_attempt(
    capsys: pytest.CaptureFixture[str],
) -> None:
    page.check("2.1-double", lambda values: 3)
    capsys.readouterr()
    page.solution("2.1-double")
    told = capsys.readouterr().out
    assert "return [2 * value for value in values]" in told
    assert "A list of new values leaves the old one alone." in told


def test_who_has_not_tried_is_asked_once(capsys: pytest.CaptureFixture[str]) -> None:
    page.check("2.1-double", lambda values: TODO)
    capsys.readouterr()
    page.solution("2.1-double")
    assert "Not attempted yet" in (told := capsys.readouterr().out)
    assert "return [2 *" not in told
    page.solution("2.1-double")
    assert "return [2 *" in capsys.readouterr().out


def test_an_attempt_of_an_earlier_session_counts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page.check("2.1-double", lambda values: 3)
    monkeypatch.setattr(session, "_session", Session(2))
    capsys.readouterr()
    page.solution("2.1-double")
    assert "return [2 *" in capsys.readouterr().out


def test_todo_is_one_object_also_after_pickling() -> None:
    import pickle

    assert pickle.loads(pickle.dumps(TODO)) is TODO


class Endless:
    def __repr__(self):
        while True:
            pass


class Shy:
    def __getattr__(self, name):
        raise RuntimeError(name)

    def __call__(self, x):
        return x


class Secret:
    def __repr__(self):
        raise ZeroDivisionError


def with_odd_default(x=Secret()):  # noqa: B008
    return x


@pytest.mark.parametrize("make", [Endless, Shy, lambda: with_odd_default])
def test_an_answer_that_cannot_be_looked_at_is_told(make):
    def reference(x):
        return x

    result = try_answer(make(), reference, (), 0.3)
    assert result.outcome == "failed"
    assert "cannot be looked at" in result.says


def test_a_result_that_cannot_be_shown_is_told():
    def about(answer):
        """Equality."""
        assert given(answer, 1) == 1, "not equal"

    result = try_answer(lambda x: Endless(), lambda x: x, (about,), 0.3)
    assert result == Result(
        "failed",
        "Equality: what came out cannot be shown, `Runaway: stopped after 0.3 s`",
    )


def test_an_answer_is_tested_as_in_a_fresh_kernel():
    def about(answer):
        """The default kind."""
        made = given(answer, 2.0)
        assert (made.dtype, made.device.type) == (torch.float32, "cpu"), f"{made}"
        assert made.requires_grad, "no graph"

    weight = torch.ones(1, requires_grad=True)
    torch.set_default_dtype(torch.float64)
    torch.set_default_device("meta")
    try:
        with torch.no_grad():
            result = try_answer(
                lambda x: weight * torch.tensor(x), lambda x: x, (about,), 5
            )
            assert torch.get_default_dtype() is torch.float64
            assert torch.get_default_device().type == "meta"
            assert not torch.is_grad_enabled()
    finally:
        torch.set_default_dtype(torch.float32)
        torch.set_default_device(None)
    assert result.outcome == "passed"
