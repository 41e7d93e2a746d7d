"""The exercise of part 7.1: a partial load with an explicit list of what may be left."""

import torch

from labkit.chapters.ch07 import partial_answers as answers
from labkit.chapters.ch07.partial_bench import (
    Answer,
    Model,
    check_values,
    copied,
    load,
    refusal,
    saved,
)
from labkit.lesson.exercise import Exercise, Wrong


def all_fits(answer: Answer) -> None:
    """a state in which everything fits"""
    model, state = Model(0), saved()
    names = load(answer, model, state)
    check_values(
        model, state, list(dict(model.named_parameters())), "was reported, not loaded"
    )
    check_values(
        model,
        state,
        list(state),
        "is a buffer, and has not been loaded: it is state too",
    )
    assert names == sorted(state), (
        f"{len(state)} names were loaded and should be returned, sorted; {names} came"
    )


def allowed_is_left(answer: Answer) -> None:
    """a head that is missing, then one of another shape, with "head." allowed"""
    missing = {n: v for n, v in saved().items() if not n.startswith("head.")}
    for state in (missing, saved(classes=7)):
        model = Model(0)
        before, body = copied(model), sorted(missing)
        names = load(answer, model, state, ("head.",))
        check_values(model, state, body, "fits, and has not been loaded")
        check_values(
            model, before, ["head.weight", "head.bias"], "does not fit, and has changed"
        )
        assert names == body, (
            "the names of what was loaded are asked for, sorted, so without the head's; "
            f"{names} came"
        )


def missing_is_refused(answer: Answer) -> None:
    """two names missing in the state, none of them allowed"""
    gone = ("body.0.bias", "forehead.weight")
    state = {name: value for name, value in saved().items() if name not in gone}
    said = refusal(answer, Model(0), state, (), "two names are missing in `state`")
    absent = [name for name in gone if name not in said]
    assert not absent, (
        f"{' and '.join(gone)} are missing, and the message must have every name; "
        f"{absent[0]} is not in it: {said[:90]}"
    )


def beginnings_count(answer: Answer) -> None:
    """ "head." is allowed, and forehead.weight is missing"""
    state = saved()
    del state["forehead.weight"]
    why = '"head." stands inside forehead.weight, which does not begin with it'
    assert "forehead.weight" in refusal(answer, Model(0), state, ("head.",), why)


def unexpected_is_refused(answer: Answer) -> None:
    """a name in the state that the model does not have"""
    state = saved() | {"neck.weight": torch.ones(2)}
    said = refusal(
        answer, Model(0), state, (), "neck.weight is in `state`, the model has none"
    )
    assert "neck.weight" in said, (
        f"neck.weight is not named in the message: {said[:90]}"
    )


def shape_is_refused(answer: Answer) -> None:
    """another shape that was not allowed"""
    why = "head.weight is (3, 4) in the model and (7, 4) in `state`, and not allowed"
    said = refusal(answer, Model(0), saved(classes=7), (), why)
    for wanted in ("head.weight", "head.bias"):
        assert wanted in said, (
            f"{wanted} has another shape and is not named: {said[:90]}"
        )
    plain = said.replace(" ", "")
    for numbers in ("3,4", "7,4"):
        assert numbers in plain, (
            f"head.weight is ({numbers.replace(',', ', ')}) on one side, which the "
            f"message should show: both shapes tell what to do. It says: {said[:90]}"
        )


def untouched_when_refused(answer: Answer) -> None:
    """the model after a refusal"""
    wrapped = {f"module.{name}": value for name, value in saved().items()}
    short = {n: v for n, v in saved().items() if n != "body.1.running_mean"}
    for state in (short, wrapped, saved(classes=7)):
        model = Model(0)
        before = copied(model)
        refusal(answer, model, state, (), "not all of this fits")
        check_values(
            model,
            before,
            list(before),
            "was overwritten before the error came: look first, then load",
        )


def memory_of_its_own(answer: Answer) -> None:
    """the state after the loaded model has been trained"""
    model, state = Model(0), saved()
    load(answer, model, state)
    before = {name: value.clone() for name, value in state.items()}
    with torch.no_grad():
        for value in model.state_dict().values():
            value.add_(1)
    for name, value in state.items():
        assert torch.equal(value, before[name]), (
            f"an update of the model changed `{name}` in `state`: they share memory"
        )


EXERCISES = [
    Exercise(
        id="7.1-partial-load",
        title="A partial load that you need not trust",
        minutes=10,
        difficulty="medium",
        deliver="`partial_load(model, state, allowed=())`: loads what fits, refuses what "
        "does not and was not allowed, returns the sorted names of what it loaded",
        reference=answers.partial_load,
        tests=(
            all_fits,
            allowed_is_left,
            missing_is_refused,
            beginnings_count,
            unexpected_is_refused,
            shape_is_refused,
            untouched_when_refused,
            memory_of_its_own,
        ),
        hints=(
            "Which names are in both, with the same shape, and what are all the others?",
            "`a.keys() | b.keys()` has the names of both sides; "
            "`name.startswith(tuple(allowed))` takes a tuple of beginnings.",
            "Collect every problem in a list and raise once, before the load. What is left "
            "after that loads with `strict=False`.",
        ),
        why=(
            "It looks at everything first: three kinds of misfit are one question, whether "
            "a name stands on both sides with one shape. Only then is it loaded, by "
            "`load_state_dict`, which copies, and which knows buffers and parameters."
        ),
        wrong=(
            Wrong(answers.filtered_only, "two names are missing in `state`, and no"),
            Wrong(answers.strict_false, "excuses names, and never another shape"),
            Wrong(answers.shapes_dropped, "and not allowed, and no ValueError"),
            Wrong(
                answers.missing_only, "neck.weight is in `state`, the model has none"
            ),
            Wrong(answers.first_only, "the message must have every name"),
            Wrong(answers.names_without_shapes, "both shapes tell what to do"),
            Wrong(answers.loaded_first, "look first, then load"),
            Wrong(answers.parameters_only, "is a buffer, and has not been loaded"),
            Wrong(answers.put_into_the_dict, "was reported, not loaded"),
            Wrong(answers.assigned, "they share memory"),
            Wrong(answers.anywhere_in_the_name, "stands inside forehead.weight"),
            Wrong(answers.nothing_told, "names were loaded and should be returned"),
        ),
        variants=(answers.copied_by_hand,),
    )
]
