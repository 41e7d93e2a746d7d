"""The source of a class from a notebook's cell, with all that it needs, as a module."""

import ast
import inspect
import linecache
import symtable
import textwrap
from types import FunctionType, ModuleType
from typing import Any

PLAIN = (int, float, str, bytes, bool, type(None))


class NoSource(Exception):
    """A reason, in one sentence, why a class cannot be written into a file."""


def source_of(answer: type) -> str:
    """A module that defines `answer`, and under ANSWER its name.

    What the class uses of its page comes along: imported modules and names, other
    functions and classes of the page, plain constants.  Raises NoSource where something
    cannot be written down.

    >>> print(source_of(textwrap.TextWrapper).splitlines()[-1])
    ANSWER = 'TextWrapper'
    """
    parts: dict[str, str] = {}
    collect(answer, parts)
    text = "\n\n".join(parts.values())
    return f"from __future__ import annotations\n\n{text}\n\nANSWER = {answer.__name__!r}\n"


def collect(item: type | FunctionType, parts: dict[str, str]) -> None:
    """Add the source of `item` to `parts`, behind that of all it uses."""
    if item.__name__ in parts:
        return
    parts[item.__name__] = ""  # on its way: two may use each other
    text, names = definition(item)
    for name in sorted(used(text) & names.keys()):
        if name not in parts:
            bring(name, names[name], item, parts)
    parts.pop(item.__name__)
    parts[item.__name__] = text


def bring(name: str, value: Any, user: Any, parts: dict[str, str]) -> None:
    """Add what makes `name` stand for `value` in the module."""
    home = getattr(value, "__module__", None)
    called = getattr(value, "__name__", None)
    if isinstance(value, ModuleType):
        parts[name] = f"import {value.__name__} as {name}"
    elif isinstance(value, type | FunctionType) and home == user.__module__:
        collect(value, parts)
        if called != name:
            parts[name] = f"{name} = {called}"
    elif home and called and called.isidentifier():
        parts[name] = f"from {home} import {called} as {name}"
    elif isinstance(value, PLAIN):
        parts[name] = f"{name} = {value!r}"
    else:
        raise NoSource(
            f"`{name}` is a {type(value).__name__} of the page, which a new process "
            "does not have: make it inside the class"
        )


def definition(item: type | FunctionType) -> tuple[str, dict[str, Any]]:
    """The text of a class or function as its cell or file has it, and its globals."""
    made = [item] if isinstance(item, FunctionType) else methods(item)
    if not made:
        raise NoSource(f"`{item.__name__}` has no method of its own")
    first = made[0]
    lines = linecache.getlines(first.__code__.co_filename, first.__globals__)
    try:
        tree = ast.parse("".join(plain(lines)))
    except SyntaxError:
        tree = ast.Module([], [])
    kinds = ast.FunctionDef if isinstance(item, FunctionType) else ast.ClassDef
    inside = first.__code__.co_firstlineno
    for node in ast.walk(tree):
        if isinstance(node, kinds) and node.name == item.__name__:
            start = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            if start <= inside <= (node.end_lineno or start):
                text = "".join(lines[start - 1 : node.end_lineno])
                return textwrap.dedent(text), first.__globals__
    raise NoSource(f"the source of `{item.__name__}` is not to be found")


def methods(of: type) -> list[FunctionType]:
    found = [getattr(x, "__func__", x) for x in vars(of).values()]
    plain = [inspect.unwrap(x) for x in found if isinstance(x, FunctionType)]
    return [x for x in plain if isinstance(x, FunctionType)]


def plain(lines: list[str]) -> list[str]:
    """The lines of a cell without IPython's magics, which are no Python."""
    return ["\n" if line.lstrip().startswith(("%", "!")) else line for line in lines]


def used(text: str) -> set[str]:
    """Every name that the text looks up outside of itself; no parameter, no local name."""
    found: set[str] = set()
    todo = [symtable.symtable(text, "answer", "exec")]
    while todo:
        table = todo.pop()
        todo += table.get_children()
        found |= {
            symbol.get_name()
            for symbol in table.get_symbols()
            if symbol.is_referenced() and symbol.is_global()
        }
    return found
