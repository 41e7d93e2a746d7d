"""What the learner has done: noted by traps and exercises, shown as a table."""

import atexit
import importlib
import sqlite3
from collections.abc import Iterable

from labkit.lesson.evidence import LabError, page_call, say, short
from labkit.lesson.registry import chapter_list, chapters
from labkit.lesson.session import current
from labkit.lesson.store import with_file

KINDS = ("prediction", "trap", "exercise")
Row = tuple[str, str, str, str]  # kind, item, outcome, detail
Done = set[tuple[str, str, str]]  # what was ever reached: kind, item, outcome


def record(kind: str, item: str, outcome: str, detail: str = "") -> None:
    """Add one line to the learner's progress.

    `kind` is "prediction", "trap" or "exercise", `item` a slug or id, `outcome` a word,
    `detail` what else is worth keeping (a prediction's choice).  Where the file cannot be
    written the line waits in memory for the next call, and the page says so once.
    Nothing is kept where `setup(solve=True)` answers for the learner.

    >>> record("exercise", "2.1-batch", "passed")
    """
    if kind not in KINDS:
        raise LabError(f"record: kind is one of {', '.join(KINDS)}; {kind!r} came")
    if current().solve:
        return
    row = (kind, item, outcome, detail)
    notes = current().note("progress")
    waiting: list[Row] = notes.setdefault("waiting", [])
    waiting.append(row)
    write(waiting)
    if waiting and not notes.get("at exit"):
        notes["at exit"] = True
        atexit.register(write, waiting)


def write(waiting: list[Row]) -> None:
    """Write the lines that wait, and forget them; where that fails they wait on."""

    def insert(file: sqlite3.Connection) -> bool:
        with file:  # one transaction
            file.executemany("INSERT INTO events VALUES (?, ?, ?, ?)", waiting)
        return True

    if not waiting:
        return
    if with_file(insert, False):
        waiting.clear()


def latest(kind: str | None = None) -> dict[tuple[str, str], str]:
    """The last outcome of everything on record, by (kind, item)."""
    return {row[:2]: row[2] for row in events() if kind in (None, row[0])}


def answers() -> dict[str, str]:
    """The outcome of each trap's prediction, by slug, as it stood when the trap ran.

    What is chosen after the result is known does not count; of a trap that ran without
    a prediction, the first one afterwards does.
    """
    said: dict[str, str] = {}
    ran: set[str] = set()
    settled: set[str] = set()
    for kind, item, outcome, _ in events():
        if kind == "trap":
            ran.add(item)
        elif kind == "prediction" and item not in settled:
            said[item] = outcome
        if item in ran and item in said:
            settled.add(item)
    return said


def predicted(slug: str) -> str | None:
    """The choice that the learner last predicted for a trap, or None."""
    choice = None
    for kind, item, _, detail in events():
        if (kind, item) == ("prediction", slug):
            choice = detail
    return choice


def events() -> list[Row]:
    """Everything on record, the oldest first, with what waits to be written."""

    def read(file: sqlite3.Connection) -> list[Row]:
        columns = "kind, item, outcome, detail"
        return file.execute(f"SELECT {columns} FROM events ORDER BY rowid").fetchall()

    none: list[Row] = []
    return with_file(read, none) + current().note("progress").get("waiting", [])


@page_call
def progress(chapter: int | None = None) -> None:
    """Show what has been predicted, run, fixed and solved, chapter by chapter.

    `chapter` is a page's number: then also what is still open on it is named.
    Raises LabError for a chapter that there is not.

    >>> progress(2)
    """
    written = [n for n in chapters() if any(items(n))]
    if chapter is not None and (type(chapter) is not int or chapter not in written):
        known = ", ".join(str(n) for n in written) or "none yet"
        raise LabError(f"progress: chapter is one of {known}; {short(chapter)} came")
    done, answered = {row[:3] for row in events()}, answers()
    lines = [
        "| chapter | predictions right | traps run | fixed | exercises passed |",
        "|---|---|---|---|---|",
    ]
    for number in written if chapter is None else [chapter]:
        lines.append(table_row(number, done, answered))
    if chapter is not None:
        lines += ["", still_open(chapter, done)]
    say("\n".join(lines))


def title(number: int) -> str:
    """The chapter's subject, from its package's first line ("Chapter 02: tensors.")."""
    words = importlib.import_module(f"labkit.chapters.ch{number:02}").__doc__ or ""
    subject = words.strip().split("\n")[0].rpartition(": ")[2].rstrip(".")
    return subject[:1].upper() + subject[1:]


def items(number: int) -> tuple[list[str], list[tuple[str, str]]]:
    """The chapter's exercises by id, and its traps by slug and number."""
    exercises = [exercise.id for exercise in chapter_list("exercise", number)]
    traps = [(trap.slug, trap.number) for trap in chapter_list("trap", number)]
    return exercises, traps


def table_row(number: int, done: Done, answered: dict[str, str]) -> str:
    exercises, traps = items(number)
    slugs = [slug for slug, _ in traps]
    said = [answered[slug] for slug in slugs if slug in answered]
    right = f"{said.count('right')} of {len(said)}" if said else "none yet"
    ran = count(done, "trap", slugs, "run", "fixed")
    fixed = count(done, "trap", slugs, "fixed")
    passed = count(done, "exercise", exercises, "passed")
    return (
        f"| {number:02} {title(number)} | {right} | {ran} of {len(slugs)} "
        f"| {fixed} of {len(slugs)} | {passed} of {len(exercises)} |"
    )


def count(done: Done, kind: str, names: Iterable[str], *outcomes: str) -> int:
    """How many of `names` ever had one of the outcomes."""
    return sum(any((kind, x, outcome) in done for outcome in outcomes) for x in names)


def still_open(number: int, done: Done) -> str:
    exercises, traps = items(number)
    unsolved = [
        f"`{x}`" for x in exercises if not count(done, "exercise", [x], "passed")
    ]
    unseen = [
        f"`{name}`" for slug, name in traps if not count(done, "trap", [slug], "run")
    ]
    parts = []
    if unseen:
        parts.append("traps not run yet: " + ", ".join(unseen))
    if unsolved:
        parts.append("exercises still open: " + ", ".join(unsolved))
    text = "; ".join(parts) or "nothing is open on this page"
    return text[0].upper() + text[1:] + "."
