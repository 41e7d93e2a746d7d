"""Is this computer ready?  One line for each thing that a page needs."""

from dataclasses import dataclass
from typing import Any

from labkit.lesson import checks
from labkit.lesson.checks import Line
from labkit.lesson.evidence import page_call, say, shell, show_widget

CLICKED = "Controls work here: the click has reached Python."


@dataclass(frozen=True)
class Report:
    """What `doctor` found, line by line."""

    lines: tuple[Line, ...]

    @property
    def ok(self) -> bool:
        """True where nothing needs mending."""
        return all(line.ok is not False for line in self.lines)

    def __repr__(self) -> str:
        bad = [line.what for line in self.lines if line.ok is False]
        found = f"to mend: {', '.join(bad)}" if bad else "nothing to mend"
        return f"Report({len(self.lines)} lines, {found})"

    def markdown(self) -> str:
        """A table of the lines."""
        words = {True: "✓ ok", False: "✗ to mend", None: "? unknown"}
        rows = [f"| {x.what} | {words[x.ok]} | {x.says} |" for x in self.lines]
        return "\n".join(["| what | | |", "|---|---|---|", *rows])


@page_call
def doctor() -> Report:
    """Check the environment and the front end; each line is ok or says how to mend it.

    In a notebook a button follows: whether controls work can be told only by a click.
    Returned is the report, with `ok` and `lines`.

    >>> doctor().ok
    True
    """
    report = Report(
        (
            checks.python(),
            *(checks.package(name, least) for name, least in checks.PACKAGES.items()),
            checks.bridge(),
            checks.device(),
            checks.cores(),
            checks.memory(),
            checks.disk(),
            checks.data(),
            checks.progress_file(),
            checks.version(),
            front_end(),
        )
    )
    say(report.markdown())
    offer_button(report)
    return report


def front_end() -> Line:
    what = "controls"
    running: Any = shell()
    if running is None or not hasattr(running, "kernel"):
        return Line(what, None, "to be seen in a notebook; this is a terminal")
    return Line(what, None, "click the button below; none there: see the line under it")


def offer_button(report: Report) -> None:
    """A button that answers, and a line for those who see none."""
    running: Any = shell()
    missing = any(x.what == "ipywidgets" and x.ok is False for x in report.lines)
    if running is None or not hasattr(running, "kernel") or missing:
        return
    import ipywidgets as w

    button = w.Button(description="Do controls work?")
    note = w.Label()

    def clicked(_: Any) -> None:
        note.value = CLICKED

    button.on_click(clicked)
    show_widget(w.HBox([button, note], layout=w.Layout(flex_flow="row wrap")))
    say(
        "No button above, or no answer to a click: everything still works, without "
        'controls. Answer a prediction by `lk.predict("0.1.1", 2)`; to get controls, '
        "run `python -m pip install -U ipywidgets jupyterlab`, restart the notebook "
        "server and reload the page."
    )
