"""Where a page's traps, claims, exercises and explorers are looked up, by their id."""

import difflib
import importlib
import importlib.util
import re
from typing import Any

from labkit.lesson.evidence import LabError, short

PLACES = {  # kind: module of the chapter, list in it, field that names an item
    "trap": ("traps", "TRAPS", "number"),
    "claim": ("traps", "CLAIMS", "id"),
    "exercise": ("exercises", "EXERCISES", "id"),
    "explorer": ("explorers", "EXPLORERS", "id"),
}


def find(kind: str, id: str) -> Any:
    """The trap, claim, exercise or explorer called `id`.

    A trap answers to its number (2.1.1) and to its slug (2.1-shared-memory).
    Raises LabError that names the nearest ones if there is none.
    """
    if not isinstance(id, str):
        example = "2.1.1" if kind == "trap" else "2.1-strides"
        raise LabError(
            f"{a(kind)} is called by its id as a string, like {example!r}; "
            f"{short(id)} ({type(id).__name__}) came"
        )
    number = re.match(r"[CE]?(\d{1,2})(?!\d)", id)
    items = chapter_items(kind, int(number.group(1))) if number else {}
    if id in items:
        return items[id]
    known = items or {name: None for n in chapters() for name in chapter_items(kind, n)}
    near = difflib.get_close_matches(id, known, n=3, cutoff=0.3) or list(known)[:3]
    raise LabError(
        f"there is no {kind} {short(id)}; the nearest: {', '.join(near) or 'none'}"
    )


def chapter_items(kind: str, chapter: int) -> dict[str, Any]:
    """The chapter's items of one kind, by every name they answer to."""
    found = {}
    for item in chapter_list(kind, chapter):
        found[getattr(item, PLACES[kind][2])] = item
        if kind == "trap":
            found[item.slug] = item
    return found


def chapter_list(kind: str, chapter: int) -> list[Any]:
    """The chapter's items of one kind, in the page's order; [] where it has none."""
    module, name, _ = PLACES[kind]
    path = f"labkit.chapters.ch{chapter:02}"
    if not has_module(path) or not has_module(f"{path}.{module}"):
        return []
    return list(getattr(importlib.import_module(f"{path}.{module}"), name, []))


def chapters() -> list[int]:
    """The numbers of the chapters that labkit knows, in order."""
    return [n for n in range(11) if has_module(f"labkit.chapters.ch{n:02}")]


def has_module(path: str) -> bool:
    return importlib.util.find_spec(path) is not None


def a(noun: str) -> str:
    return f"an {noun}" if noun[0] in "aeiou" else f"a {noun}"
