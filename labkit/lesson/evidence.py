"""How a page speaks: Markdown for readers, evidence in the metadata for tools."""

import functools
import inspect
import math
import os
import re
import sys
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import torch

from labkit import __version__

P = ParamSpec("P")
R = TypeVar("R")


class LabError(ValueError):
    """The caller's mistake, told in one sentence."""


def strict() -> bool:
    """True in builds and tests: what a learner would be told kindly, raises."""
    return os.environ.get("LABKIT_STRICT", "") not in ("", "0")


def shell() -> Any:
    """The running IPython shell, or None in a plain script."""
    ipython = sys.modules.get("IPython")
    return ipython.get_ipython() if ipython is not None else None


def say(markdown: str, *records: dict[str, Any]) -> None:
    """Show `markdown`, with evidence that tools find in the output's metadata.

    `records` hold one of the keys trap, claim, exercise, explorer, prediction; torch's
    and labkit's versions and the device are added.  Outside IPython the text is printed.
    """
    plain = plain_text(markdown)
    if shell() is None:
        print(printable(plain))
        return
    from IPython.display import display

    display(
        {"text/markdown": markdown, "text/plain": plain},
        metadata={"labkit": [complete(record) for record in records]},
        raw=True,
    )


def complete(record: dict[str, Any]) -> dict[str, Any]:
    """The evidence record with what every record has."""
    from labkit.lesson.session import current

    return {
        **{name: storable(value) for name, value in record.items()},
        "torch": torch.__version__.split("+")[0],
        "device": current().device.type,
        "labkit": __version__,
    }


def storable(value: Any) -> Any:
    """The value as a notebook can keep it: JSON has no NaN and no infinity."""
    if isinstance(value, dict):
        return {name: storable(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [storable(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def plain_text(markdown: str) -> str:
    """The Markdown without its marks, for terminals and screen readers."""
    lines = []
    for line in markdown.splitlines():
        if re.fullmatch(r"\|[-:|]+\|", line):
            continue
        if line.startswith("|"):
            cells = re.split(r"(?<!\\)\|", line.strip("|"))
            line = " · ".join(cell.strip() for cell in cells if cell.strip())
        line = re.sub(r"^(> ?)+", "", line)
        lines.append(re.sub(r"\*\*|\\(?=\|)|`+", "", line).rstrip())
    return "\n".join(lines)


def printable(text: str) -> str:
    """The text with `?` for what standard output's encoding lacks (cp1252 has no ✓)."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    return text.encode(encoding, "replace").decode(encoding)


def has_widgets() -> bool:
    """Can controls be made here?"""
    try:
        import ipywidgets  # noqa: F401
    except ImportError:
        return False
    return True


def show_widget(widget: Any) -> None:
    """Show live controls and nothing else.

    A front end without widgets then shows nothing, and a stored page keeps nothing.
    """
    from IPython.display import display

    view = {"version_major": 2, "version_minor": 0, "model_id": widget.model_id}
    display({"application/vnd.jupyter.widget-view+json": view}, raw=True)


def code(text: str) -> str:
    """A Markdown code span that backticks and table pipes in `text` cannot break."""
    text = re.sub(r"\s+", " ", text).strip() or " "
    fence = "`"
    while fence in text:
        fence += "`"
    pad = " " if fence != "`" else ""
    return f"{fence}{pad}{text}{pad}{fence}".replace("|", "\\|")


def literal(text: str) -> str:
    """`text` as Markdown that shows it as it is: `4*3` keeps its star."""
    return re.sub(r"([\\`*_\[\]<>|~])", r"\\\1", text)


def short(value: Any, width: int = 72) -> str:
    """One line of `repr(value)`, cut at `width` characters."""
    try:
        text = repr(value)
    except Exception as error:
        text = f"<{type(value).__name__} whose repr raised {type(error).__name__}>"
    text = text[: 100 * width]  # of 30 MB the patterns below would take seconds
    text = re.sub(r"\s+", " ", re.sub(r" at 0x[0-9a-fA-F]+", "", text))
    text = re.sub(r"\[ +", "[", text)
    return text if len(text) <= width else text[: width - 1] + "…"


def one_line(error: BaseException, match: str = "", width: int = 200) -> str:
    """The error's name and the line of its message that `match` finds, or its first.

    Of a line longer than `width` characters only the sentence is kept, and cut there.
    """
    try:
        text = re.sub(r"\x1b\[[0-9;]*m", "", str(error))
    except Exception as fault:
        text = f"its message cannot be read, {type(fault).__name__}"
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    line = _told(lines, match)
    if len(line) > width:
        line = _told(re.split(r"(?<=[.!?]) +", line), match)
    if len(line) > width:
        line = line[: width - 1] + "…"
    return f"{type(error).__name__}: {line}" if line else type(error).__name__


def _told(parts: list[str], match: str) -> str:
    """The first part that `match` finds; the first of all if it finds none."""
    found = [part for part in parts if match and re.search(match, part, re.IGNORECASE)]
    return next(iter(found or parts), "")


def page_call(call: Callable[P, R]) -> Callable[P, R | None]:
    """Let a call on a page tell the caller's mistake in one sentence and go on.

    A mistake is a LabError, and arguments that do not fit.  Under LABKIT_STRICT=1 it
    raises LabError.
    """
    signature = inspect.signature(call)

    @functools.wraps(call)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R | None:
        try:
            try:
                signature.bind(*args, **kwargs)
            except TypeError as misfit:
                accepted = ", ".join(signature.parameters)
                name = call.__name__
                raise LabError(f"{name} takes ({accepted}): {misfit}") from None
            return call(*args, **kwargs)
        except LabError as error:
            if strict():
                raise
            say(f"**Not run** · {error}")
            return None

    return wrapper
