"""Exercises: checked as often as you like, and never a reason for a page to stop."""

import inspect
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from labkit.lesson import progress
from labkit.lesson.answer import TODO, given
from labkit.lesson.evidence import LabError, page_call, say, strict
from labkit.lesson.guard import SECONDS
from labkit.lesson.registry import find
from labkit.lesson.session import current
from labkit.lesson.trial import Result, Test, try_answer

__all__ = ["TODO", "Exercise", "Wrong", "check", "given", "hint", "solution"]

MARKS = {
    "todo": "○ not attempted",
    "passed": "✓ passed",
    "failed": "✗ not yet",
    "raised": "! your code raised",
}


@dataclass(frozen=True)
class Wrong:
    """A wrong answer that people really give, and the words its report must contain."""

    answer: Callable[..., Any]
    message: str


@dataclass(frozen=True)
class Exercise:
    """One exercise: what to deliver, what is right, and what is known to go wrong.

    `difficulty` is "easy", "medium" or "hard"; `deliver` says in one line what to write;
    `reference` is a right function or class.  Each of the `tests` takes the answer, asks
    it through `given`, asserts with a one-line message (what came out, what was
    expected), and names in its docstring what it tests.  The first of the `hints` is a
    question; `why` stands under the solution.  `wrong` holds at least three wrong
    answers, `variants` right ones written differently; a test may take `seconds`.
    """

    id: str
    title: str
    minutes: int
    difficulty: str
    deliver: str
    reference: Callable[..., Any]
    tests: tuple[Test, ...]
    hints: tuple[str, ...]
    why: str
    wrong: tuple[Wrong, ...]
    variants: tuple[Callable[..., Any], ...]
    seconds: float = SECONDS

    def run(self, answer: Any) -> Result:
        """Where `answer` stands, and what to say about it."""
        return try_answer(answer, self.reference, self.tests, self.seconds)


@page_call
def check(id: str, answer: Any) -> Any:
    """Say where `answer` stands, and give back a function that later cells can use.

    `id` is the exercise's, `answer` the learner's function or class itself.  Returned is
    the learner's if it passed, else the reference, so that a page always runs to its end.
    With `setup(solve=True)` the reference goes through the same tests instead.  An
    unknown `id` is told in one sentence, and `answer` is returned as it came; under
    LABKIT_STRICT=1 it raises LabError.

    >>> batch = check("2.1-batch", batch)
    """
    try:
        exercise: Exercise = find("exercise", id)
        if not __debug__:
            raise LabError(
                "check: Python runs without its asserts (-O): nothing is tested"
            )
    except LabError as error:
        if strict():
            raise
        say(f"**Not checked** · {error}")
        return answer
    solve = current().solve
    result = judge(exercise, exercise.reference if solve else answer, solve)
    if result.outcome != "todo":
        current().note("attempts")[exercise.id] = True
        progress.record("exercise", exercise.id, result.outcome)
    say(
        report(exercise, result, solve),
        {
            "exercise": exercise.id,
            "outcome": result.outcome,
            "minutes": exercise.minutes,
            "difficulty": exercise.difficulty,
        },
    )
    mine = result.outcome == "passed" and not solve
    return answer if mine else exercise.reference


def judge(exercise: Exercise, answer: Any, solve: bool) -> Result:
    if answer is TODO:
        return Result("todo")
    if answer is exercise.reference and not solve:
        return Result("todo", "This is the reference that the last check handed back.")
    return exercise.run(answer)


def report(exercise: Exercise, result: Result, solve: bool) -> str:
    """What `check` shows: one line on where it stands, then what helps."""
    call = f'("{exercise.id}")`'
    head = f"**{MARKS[result.outcome]}** · `{exercise.id}`"
    if result.outcome == "todo":
        lines = [
            f"{head} {exercise.title} · {exercise.minutes} minutes, {exercise.difficulty}",
            f"To deliver: {exercise.deliver}",
            f"{result.says} Write your answer in place of `lk.TODO` and run the cell "
            f"again; `lk.hint{call} helps.".lstrip(),
        ]
    elif result.outcome == "passed":
        whose = " · reference" if solve else ""
        lines = [
            f"{head}{whose} · {result.says}",
            f"`lk.solution{call} shows the reference, to compare.",
        ]
    else:
        lines = [f"{head} · {result.says}", f"`lk.hint{call} helps."]
    return "  \n".join(lines)


@page_call
def hint(id: str) -> None:
    """Show the next hint for the exercise `id`; the first one is a question.

    Raises LabError for an unknown exercise.

    >>> hint("2.1-batch")
    """
    exercise: Exercise = find("exercise", id)
    given_so_far = current().note("hints")
    number = min(given_so_far.get(exercise.id, 0) + 1, len(exercise.hints))
    given_so_far[exercise.id] = number
    text = f"**Hint {number} of {len(exercise.hints)}** · {exercise.hints[number - 1]}"
    if number == len(exercise.hints):
        text += f'  \nThe last one; `lk.solution("{exercise.id}")` shows an answer.'
    say(text)


@page_call
def solution(id: str) -> None:
    """Show the reference answer to the exercise `id`, and why it is written so.

    Who has not tried yet is asked once whether to try first.  Raises LabError for an
    unknown exercise.

    >>> solution("2.1-batch")
    """
    exercise: Exercise = find("exercise", id)
    if not tried(exercise):
        current().note("attempts")[exercise.id] = True  # asking twice is enough
        say(
            f"**Not attempted yet** · `{exercise.id}` takes about {exercise.minutes} "
            "minutes, and an answer you have looked for stays longer. "
            f'`lk.hint("{exercise.id}")` helps; run this once more to see the solution.'
        )
        return
    source = textwrap.dedent(inspect.getsource(exercise.reference)).strip()
    say(f"**Solution** · `{exercise.id}`\n\n```python\n{source}\n```\n\n{exercise.why}")


def tried(exercise: Exercise) -> bool:
    """Was it attempted, in this session or an earlier one?"""
    if current().solve or exercise.id in current().note("attempts"):
        return True
    return ("exercise", exercise.id) in progress.latest("exercise")
