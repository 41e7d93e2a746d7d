"""A pitfall on a page: it is predicted, run, shown, and fixed under the same test."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from labkit.lesson import progress
from labkit.lesson.evidence import (
    LabError,
    code,
    has_widgets,
    page_call,
    say,
    shell,
    short,
    show_widget,
    strict,
)
from labkit.lesson.registry import find
from labkit.lesson.session import current
from labkit.lesson.symptom import Seen, Symptom

SHOWN = {
    "raises": "It raises",
    "warns": "It warns",
    "silent": "No error, and wrong",
    "slow": "It works; what it costs",
    "heavy": "It works; what it costs",
    "varies": "Not the same twice",
    "hangs": "It does not end",
}
CURED = "This no longer shows: you fixed it, or your PyTorch did"


@dataclass(frozen=True)
class Trap:
    """One pitfall: what must show, and the question about it; its code is on the page.

    `number` is what the page calls it (2.1.1: gives nothing away), `slug` what tools
    call it (2.1-shared-memory).  `choices` maps each choice to the reply it gets after
    the run, the right one first.  `claims` are the rows of the audit it settles.
    """

    number: str
    slug: str
    symptom: Symptom
    question: str
    choices: dict[str, str]
    claims: tuple[str, ...] = ()
    core: bool = False
    simulated: bool = False

    @property
    def answer(self) -> str:
        """The right choice."""
        return next(iter(self.choices))

    @property
    def listed(self) -> list[str]:
        """The choices in an order that does not give the right one away."""
        return sorted(self.choices)


@dataclass(frozen=True)
class Ran:
    """What a page has run of one trap so far."""

    broken: Callable[[], Any]
    before: Seen
    after: Seen | None = None


@page_call
def predict(id: str, answer: int | str | None = None) -> None:
    """Ask the question of trap `id` before it is run; nothing is revealed.

    `answer` is the choice as a number from 1 or as text, where there are no buttons (a
    script, a front end without widgets).  Raises LabError for an unknown trap or choice.
    """
    trap = find("trap", id)
    choice = None if answer is None else pick(trap, answer)
    listed = "\n".join(f"{n}. {choice}" for n, choice in enumerate(trap.listed, 1))
    say(
        f"**Predict** · {trap.question}\n\n{listed}",
        {"prediction": trap.slug, "choices": len(trap.choices)},
    )
    if choice is not None:
        note_prediction(trap, choice)
        say("Noted. Run the next cell.")
    elif shell() is not None:
        if has_widgets():
            show_widget(choice_buttons(trap))
        else:
            say(
                "Buttons need ipywidgets, which is not installed; answer with "
                f'`lk.predict("{trap.number}", 1)`, or another number.'
            )


def pick(trap: Trap, answer: int | str) -> str:
    """The choice meant by a number from 1, or by the start of its text."""
    if isinstance(answer, int) and 1 <= answer <= len(trap.listed):
        return trap.listed[answer - 1]
    if isinstance(answer, str):
        plain = answer.replace("`", "").strip()
        for choice in trap.listed:
            if plain and choice.replace("`", "").startswith(plain):
                return choice
    raise LabError(
        f"predict {trap.number}: answer is a number from 1 to {len(trap.listed)} or the "
        f"start of a choice; {short(answer)} came"
    )


def note_prediction(trap: Trap, choice: str) -> None:
    current().note("predictions")[trap.slug] = choice
    outcome = "right" if choice == trap.answer else "other"
    progress.record("prediction", trap.slug, outcome, choice)


def prediction(trap: Trap) -> str | None:
    """What the learner chose, in this session or an earlier one."""
    choice = current().note("predictions").get(trap.slug)
    choice = choice or progress.predicted(trap.slug)
    return choice if choice in trap.choices else None


def choice_buttons(trap: Trap) -> Any:
    """One button a choice, and a line that says what was noted."""
    import ipywidgets as w

    note = w.HTML()
    buttons = [
        w.Button(description=str(n), layout=w.Layout(width="3em"))
        for n, _ in enumerate(trap.listed, 1)
    ]

    def choose(button: Any) -> None:
        note_prediction(trap, trap.listed[buttons.index(button)])
        note.value = f"Noted: {button.description}. Run the next cell."

    for button in buttons:
        button.on_click(choose)
    earlier = prediction(trap)
    if earlier:
        number = trap.listed.index(earlier) + 1
        note.value = f"Noted earlier: {number}. Choose again, or run the next cell."
    return w.HBox([*buttons, note], layout=w.Layout(flex_flow="row wrap"))


@page_call
def trap(
    id: str,
    broken: Callable[[], Any],
    fixed: Callable[[], Any] | None = None,
) -> None:
    """Run the trap `id`, show its symptom, and answer the prediction.

    `broken` is a function without arguments that has the fault; with `fixed`, the fix is
    run and shown under the same test too.  Raises LabError for an unknown trap or
    something that cannot be called; under LABKIT_STRICT=1 AssertionError where the
    symptom does not show.
    """
    trap = find("trap", id)
    must_run(trap, "broken", broken)
    if fixed is not None:
        must_run(trap, "fixed", fixed)
    before = trap.symptom.look(broken)
    current().note("traps")[trap.slug] = Ran(broken, before)
    if before.shown is False:
        not_shown(trap, before)
        return
    progress.record("trap", trap.slug, "run")
    says = f"{trap.symptom.says}: " if trap.symptom.says else ""
    say(
        f"> **{SHOWN[trap.symptom.kind]}** · {says}{code(before.observed)}"
        + reply(trap),
        evidence(trap, before, None),
    )
    if fixed is not None:
        judge(trap, fixed)


@page_call
def fix(id: str, fixed: Callable[[], Any]) -> None:
    """Run the fixed code of trap `id` under the same test and show both side by side.

    `fixed` is a function without arguments.  Raises LabError if the trap has not run or
    `fixed` cannot be called; under LABKIT_STRICT=1 AssertionError if it is not fixed.
    """
    trap = find("trap", id)
    must_run(trap, "fixed", fixed)
    if trap.slug not in current().note("traps"):
        raise LabError(
            f"fix {trap.number}: there is nothing to compare with yet; run the cell "
            f'with lk.trap("{trap.number}", ...) first'
        )
    judge(trap, fixed)


def judge(trap: Trap, fixed: Callable[[], Any]) -> None:
    """Compare the fixed code with what the broken code showed, and tell."""
    ran: Ran = current().note("traps")[trap.slug]
    before, after = trap.symptom.judge(ran.broken, ran.before, fixed)
    current().note("traps")[trap.slug] = replace(ran, before=before, after=after)
    table = (
        "| | what came out |\n|---|---|\n"
        f"| broken | {code(before.observed)} |\n| fixed | {code(after.observed)} |"
    )
    ok = bool(before.shown) and after.healthy
    if ok:
        progress.record("trap", trap.slug, "fixed")
    elif strict():
        raise AssertionError(
            f"trap {trap.slug}: shown {before.shown}, fixed {after.healthy}; "
            f"broken: {before.observed}; fixed: {after.observed}"
        )
    elif after.failed:
        table += "\n\nNot fixed yet: your code stopped before it could be judged."
    elif after.shown:
        table += "\n\nNot fixed yet: it still shows."
    else:
        table += f"\n\n{CURED}."
    say(table, evidence(trap, before, after))


def not_shown(trap: Trap, before: Seen) -> None:
    """Tell kindly, or raise in strict mode, that the symptom is not there."""
    if strict():
        raise AssertionError(f"trap {trap.slug} does not show: {before.observed}")
    why = "Your code stopped before it could be judged" if before.failed else CURED
    say(f"> **{why}** · {code(before.observed)}", evidence(trap, before, None))


def reply(trap: Trap) -> str:
    """What to say about the learner's prediction, or nothing if there is none."""
    chosen = prediction(trap)
    if chosen is None:
        return ""
    mark = "✓" if chosen == trap.answer else "✗"
    return f"\n>\n> {mark} You said “{chosen}”. {trap.choices[chosen]}"


def must_run(trap: Trap, name: str, run: Any) -> None:
    if callable(run):
        return
    call = "fix" if name == "fixed" else "trap"
    raise LabError(
        f"{call} {trap.number}: {name} is a function without arguments, given by its "
        f"name and not called; {short(run, 40)} ({type(run).__name__}) came"
    )


def evidence(trap: Trap, before: Seen, after: Seen | None) -> dict[str, Any]:
    measured = dict(before.measured)
    if after is not None:
        measured |= {f"fixed_{name}": value for name, value in after.measured.items()}
    return {
        "trap": trap.slug,
        "kind": trap.symptom.kind,
        "claims": list(trap.claims),
        "shown": before.shown,
        "fixed": None if after is None else after.healthy,
        "observed": before.observed,
        "measured": measured,
        "simulated": trap.simulated,
    }
