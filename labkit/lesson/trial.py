"""Trying an answer: does it fit, do its tests pass, and if not, what to say about it."""

import inspect
import linecache
import random
from collections.abc import Callable
from dataclasses import dataclass
from types import CodeType, TracebackType
from typing import Any

import numpy as np
import torch

from labkit.launch.children import ending_children
from labkit.lesson.answer import Call, NotAttempted, describe, given, noting_calls
from labkit.lesson.evidence import code, one_line, short
from labkit.lesson.guard import Runaway, guarded
from labkit.lesson.putback import default_device

Test = Callable[[Any], None]


@dataclass(frozen=True)
class Result:
    """Where an answer stands: "todo", "passed", "failed" or "raised"; and what to say."""

    outcome: str
    says: str = ""


def try_answer(
    answer: Any, reference: Callable[..., Any], tests: tuple[Test, ...], seconds: float
) -> Result:
    """Run the tests one by one, each guarded and from the same seed, until one fails."""
    try:
        with guarded(seconds=seconds):
            misfit = wrong_kind(answer, reference) or wrong_parameters(
                answer, reference
            )
    except (Exception, Runaway) as error:
        misfit = (
            f"a plain function or class is expected, and this {type(answer).__name__} "
            f"cannot be looked at, {code(one_line(error))}"
        )
    if misfit:
        return Result("failed", misfit)
    with ending_children():
        return run_tests(answer, tests, seconds, gives_nothing(reference))


def gives_nothing(reference: Callable[..., Any]) -> bool:
    """Whether a right answer returns None, as a `worker_init_fn` does."""
    return inspect.get_annotations(reference).get("return", ...) in (None, "None")


def run_tests(
    answer: Any, tests: tuple[Test, ...], seconds: float, nothing: bool
) -> Result:
    """The outcome of the first test that does not pass, or of all.

    `nothing`: a right answer returns None, so a None that came out says nothing.
    """
    for test in tests:
        with noting_calls() as calls:
            try:
                with guarded(seconds=seconds):
                    fresh_state()
                    test(answer)
            except KeyboardInterrupt:
                raise
            except BaseException as error:
                failure = error
            else:
                continue
            try:
                with guarded(seconds=seconds):  # what came out may not end its repr
                    return explain(failure, answer, test, calls, seconds, nothing)
            except (Exception, Runaway) as error:
                says = f"what came out cannot be shown, {code(one_line(error))}"
                return Result("failed", f"{subject(test)}: {says}")
    return Result("passed", f"{len(tests)} test{'s' * (len(tests) != 1)}")


def fresh_state() -> None:
    """What a test starts from, whatever the page has switched before; guarded undoes it."""
    torch.set_default_dtype(torch.float32)
    if default_device().type != "cpu":  # None breaks torch 2.6's get_default_device
        torch.set_default_device(None)
    torch.set_grad_enabled(True)
    random.seed(0)
    np.random.seed(0)
    torch.manual_seed(0)


# --- does it fit ----------------------------------------------------------------------


def wrong_kind(answer: Any, reference: Callable[..., Any]) -> str:
    """One sentence where `answer` is not the kind of thing that was asked for."""
    came = f"{code(short(answer, 48))} ({type(answer).__name__}) came"
    if inspect.isclass(reference):
        if inspect.isclass(answer):
            return ""
        return f"the class itself is expected, not an object and not a function; {came}"
    if inspect.isclass(answer):
        return f"a function is expected, and the class `{answer.__name__}` came"
    if not callable(answer):
        return f"the function itself is expected, by its name and not called; {came}"
    return ""


def wrong_parameters(answer: Any, reference: Callable[..., Any]) -> str:
    """One sentence where the parameters differ from those that were asked for."""
    want, got = parameters(reference), parameters(answer)
    if want != got:
        return f"the parameters are {code(want)}, yours are {code(got)}"
    if not inspect.isclass(reference):
        return ""
    for name, method in vars(reference).items():
        if name.startswith("_") or not inspect.isfunction(method):
            continue
        found = getattr(answer, name, None)
        if found is None or found is getattr(torch.nn.Module, name, None):
            return f"the method {code(name + parameters(method))} is missing"
        if parameters(found) != parameters(method):
            return (
                f"the parameters of `{name}` are {code(parameters(method))}, "
                f"yours are {code(parameters(found))}"
            )
    return ""


def parameters(of: Callable[..., Any]) -> str:
    """The parameters without their annotations, like "(x, *, eps=1e-08)"."""
    try:
        signature = inspect.signature(of)
    except (TypeError, ValueError):
        return "(not to be read: write a function of your own)"
    bare = inspect.Parameter.empty
    plain = [p.replace(annotation=bare) for p in signature.parameters.values()]
    return str(inspect.Signature(plain))


# --- what went wrong ------------------------------------------------------------------


def explain(
    error: BaseException,
    answer: Any,
    test: Test,
    calls: list[Call],
    seconds: float,
    nothing: bool,
) -> Result:
    """The outcome of a test that did not pass, and what to say about it."""
    # An unfinished stub may trip over its own TODO ("... not supported for 'Todo'").
    if isinstance(error, NotAttempted) or "Todo" in one_line(error):
        return Result("todo")
    call = calls[-1] if calls else None
    frames = answer_frames(error, answer, test)
    if isinstance(error, Runaway):
        says = f"it was stopped after {seconds:g} s without an end"
        return Result("raised", says + where(frames, call))
    if frames or (call is not None and call.error is error):
        says = code(one_line(error))
        if isinstance(error, SystemExit):
            says += ": an answer returns, it does not end the program"
        return Result("raised", says + where(frames, call))
    if isinstance(error, AssertionError):
        says = str(error).split("\n")[0] or f"{code(line_of(error))} does not hold"
    else:
        says = f"the test could not use what came out, {code(one_line(error))}"
    as_asked = nothing and call is not None and call.returned is None
    last = "" if as_asked else came_out(call)
    return Result("failed", f"{subject(test)}: {says}{last}")


def subject(test: Test) -> str:
    """What the test is about: the first line of its docstring."""
    doc = inspect.getdoc(test) or test.__name__.replace("_", " ")
    return doc.split("\n")[0].rstrip(".")


def came_out(call: Call | None) -> str:
    """What the last call gave, as a line of its own."""
    if call is None or call.error is not None:
        return ""
    with_what = f" for {code(call.arguments)}" if call.arguments else ""
    if call.returned is None:
        return f"  \nIt returned `None`{with_what}: is a `return` missing?"
    return f"  \nIt returned {code(describe(call.returned))}{with_what}."


def where(frames: list[tuple[CodeType, int]], call: Call | None) -> str:
    """The line of the learner's code and the arguments, as a line of its own."""
    parts = []
    if frames:
        made, number = frames[-1]
        linecache.checkcache(made.co_filename)  # a %%module may have been run anew
        text = linecache.getline(made.co_filename, number)
        parts.append(f"in line {number}, {code(text)}" if text else f"in line {number}")
    if call is not None and call.arguments:
        parts.append(f"called with {code(call.arguments)}")
    text = ", ".join(parts)
    return f"  \n{text[0].upper()}{text[1:]}." if text else ""


def answer_frames(
    error: BaseException, answer: Any, test: Test
) -> list[tuple[CodeType, int]]:
    """The learner's code in the traceback, outermost first, with line numbers."""
    frames = []
    trace: TracebackType | None = error.__traceback__
    while trace is not None:
        frames.append((trace.tb_frame.f_code, trace.tb_lineno))
        trace = trace.tb_next
    calls = [n for n, (made, _) in enumerate(frames) if made is given.__code__]
    inside = frames[calls[-1] + 1 :] if calls else []
    home = files(answer)
    if not inside and not home & files(test):
        inside = frames  # the test called it without `given`
    return [x for x in inside if x[0].co_filename in home or is_cell(x[0])]


def files(of: Any) -> set[str]:
    """The files that the function's, or the class's methods', code stands in."""
    owned = vars(of).values() if inspect.isclass(of) else [inspect.unwrap(of)]
    codes = [getattr(item, "__code__", None) for item in owned]
    return {made.co_filename for made in codes if made is not None}


def is_cell(made: CodeType) -> bool:
    """Was this code typed into a notebook?  (IPython's names for a cell's file.)"""
    return "ipykernel_" in made.co_filename or "<ipython-input" in made.co_filename


def line_of(error: BaseException) -> str:
    """The source line that raised."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return ""
    return linecache.getline(trace.tb_frame.f_code.co_filename, trace.tb_lineno)
