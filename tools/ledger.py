"""The evidence that stored pages carry, read back and compared with their chapters.

A cell's output holds in ``metadata["labkit"]`` a list of records, each with exactly one
of the keys in FIELDS and the fields that go with it.  The last record of an id on a page
counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from nbformat import NotebookNode

Record = Mapping[str, Any]
Ledger = dict[str, dict[str, Record]]

ALWAYS = {"torch": str, "device": str, "labkit": str}
BOOL_OR_NONE = (bool, type(None))
FIELDS: dict[str, dict[str, Any]] = {
    "trap": {
        "kind": str,
        "claims": list,
        "shown": BOOL_OR_NONE,
        "fixed": BOOL_OR_NONE,
        "observed": str,
        "measured": dict,
        "simulated": bool,
    },
    "claim": {"verdict": str, "measured": dict},
    "exercise": {"outcome": str, "minutes": (int, float), "difficulty": str},
    "explorer": {"controls": (list, dict)},
    "prediction": {"choices": (int, list)},
}


@dataclass(frozen=True)
class Chapter:
    """What a chapter's modules say that its page must contain, by id."""

    traps: dict[str, Any]
    claims: dict[str, Any]
    exercises: dict[str, Any]
    explorers: dict[str, Any]


def records_of(page: NotebookNode) -> Iterator[tuple[int, Record]]:
    """All records of a page with the number of their cell, in the page's order."""
    for number, cell in enumerate(page.cells, start=1):
        for output in cell.get("outputs", []):
            for record in output.get("metadata", {}).get("labkit", []):
                yield number, record


def read(page: NotebookNode) -> Ledger:
    """The page's records by kind and id; the last of an id counts."""
    ledger: Ledger = {kind: {} for kind in FIELDS}
    for _, record in records_of(page):
        for kind in FIELDS:
            if kind in record:
                ledger[kind][record[kind]] = record
    return ledger


def form_problems(page: NotebookNode) -> list[str]:
    """Where a record of the page does not have the agreed form, a sentence each."""
    found = []
    for number, record in records_of(page):
        kinds = [kind for kind in FIELDS if kind in record]
        if len(kinds) != 1:
            found.append(f"cell {number}: a record is of one kind, this of {kinds}")
            continue
        kind = kinds[0]
        what = f"cell {number}: the record of {kind} {record[kind]!r}"
        fields = {kind: str, **FIELDS[kind], **ALWAYS}
        for name in sorted(set(fields) - set(record)):
            found.append(f"{what} lacks {name}")
        for name in sorted(set(record) - set(fields)):
            found.append(f"{what} has the unknown field {name}")
        for name, wanted in fields.items():
            if name in record and not isinstance(record[name], wanted):
                found.append(f"{what} has {name}={record[name]!r}")
    return found


def chapter(number: str) -> Chapter:
    """What chapter NN says that its page must contain; empty where it has no module."""
    # here and not above: labkit brings in torch, which the rules for pages do not need
    from labkit.lesson.registry import chapter_list

    def items(kind: str, key: str) -> dict[str, Any]:
        return {getattr(item, key): item for item in chapter_list(kind, int(number))}

    return Chapter(
        traps=items("trap", "slug"),
        claims=items("claim", "id"),
        exercises=items("exercise", "id"),
        explorers=items("explorer", "id"),
    )


def missing_or_extra(page: NotebookNode, chapter: Chapter) -> list[str]:
    """How what a page shows differs from what its chapter says, a sentence each."""
    ledger = read(page)
    wanted = {
        "trap": set(chapter.traps),
        "claim": set(chapter.claims),
        "exercise": set(chapter.exercises),
        "explorer": set(chapter.explorers),
    }
    found = []
    for kind, ids in wanted.items():
        shown = set(ledger[kind])
        found += [f"{kind} {id} is not on the page" for id in sorted(ids - shown)]
        found += [f"{kind} {id} is not in the chapter" for id in sorted(shown - ids)]
    core = {slug for slug, trap in chapter.traps.items() if trap.core}
    for slug in sorted(core - set(ledger["prediction"])):
        found.append(f"the core trap {slug} is not predicted before it is run")
    for slug in sorted(set(ledger["prediction"]) - set(chapter.traps)):
        found.append(f"the prediction {slug} is not in the chapter")
    claims = [record["claim"] for _, record in records_of(page) if "claim" in record]
    for id in sorted(ids for ids in set(claims) if claims.count(ids) > 1):
        found.append(f"claim {id} is judged {claims.count(id)} times")
    return found


def unsolved(page: NotebookNode) -> list[str]:
    """What a page run with ``solve=True`` left open, a sentence each."""
    ledger = read(page)
    found = []
    for slug, record in ledger["trap"].items():
        if record["shown"] is not True:
            found.append(f"trap {slug}: shown is {record['shown']}, not True")
        if record["fixed"] is not True:
            found.append(f"trap {slug}: fixed is {record['fixed']}, not True")
    for id, record in ledger["exercise"].items():
        if record["outcome"] != "passed":
            found.append(f"exercise {id}: {record['outcome']}, not passed")
    return found
