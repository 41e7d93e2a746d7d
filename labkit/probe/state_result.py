"""What `diff_state` returns: what would match, what would not, and what is wrong."""

from dataclasses import dataclass
from typing import Any

from labkit.probe.finding import Finding, code, listed, names, plain, told


@dataclass(frozen=True)
class Mismatch:
    """One name that both sides have, but not alike.

    Attributes:
        name: as the model or the optimizer has it.
        here: the shape (a tuple) or dtype that the model or the optimizer has.
        there: what the state has in its place.
    """

    name: str
    here: Any
    there: Any

    def __str__(self) -> str:
        return f"{self.name} ({self.there} in the state, {self.here} here)"


@dataclass(frozen=True, repr=False)
class StateDiff:
    """A model or an optimizer beside a state that it might load.

    The names are those of the model; where the state's differ from them by a prefix
    alone, they are compared without it, and `prefix` is that prefix.

    Attributes:
        subject: the class of the model or the optimizer.
        matched: names of the same shape in both; for an optimizer, the parameters
            whose state fits.
        missing: names that the state lacks.
        unexpected: names that the state has and the model has not.
        wrong_shape: names whose shapes differ.
        cast: names whose dtypes differ: loading converts them without a word.
        prefix: the prefix, or the wrapper's part of a name, by which all names
            differ; "" where there is none.
        fix: one line that makes a state of fitting names out of `state`, or "".
        aliased: names whose tensors in the state share memory with the live ones.
        tied: names of the model that stand for one tensor, in groups.
        not_saved: buffers that no state dict of the model holds (persistent=False).
        devices: the devices on which a file's tensors were when they were saved.
        findings: what is wrong.
        notes: what is worth knowing.
    """

    subject: str
    matched: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    unexpected: tuple[str, ...] = ()
    wrong_shape: tuple[Mismatch, ...] = ()
    cast: tuple[Mismatch, ...] = ()
    prefix: str = ""
    fix: str = ""
    aliased: tuple[str, ...] = ()
    tied: tuple[tuple[str, ...], ...] = ()
    not_saved: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        found = len(self.findings)
        said = f"{found} finding{'s' * (found != 1)}" if found else "no findings"
        return f"<StateDiff: {self.subject}, {self._counts()}; {said}>"

    def __str__(self) -> str:
        return told(repr(self), self.findings)

    def _repr_markdown_(self) -> str:
        lines = [
            f"{code(self.subject)} beside the state: {self._counts()}.",
            "",
            listed(self.findings),
        ]
        if self.notes:
            lines += ["", *(f"- Note: {plain(note)}" for note in self.notes)]
        rows = {
            "missing": self.missing,
            "unexpected": self.unexpected,
            "wrong shape": tuple(map(str, self.wrong_shape)),
            "cast": tuple(map(str, self.cast)),
        }
        if any(rows.values()):
            lines += ["", "| | names |", "|---|---|"]
            lines += [
                f"| {kind} | {plain(names(found, 8))} |"
                for kind, found in rows.items()
                if found
            ]
        return "\n".join(lines).rstrip()

    def _counts(self) -> str:
        counts = {
            "missing": len(self.missing),
            "unexpected": len(self.unexpected),
            "of another shape": len(self.wrong_shape),
            "cast": len(self.cast),
        }
        said = [f"{number:,} {kind}" for kind, number in counts.items() if number]
        return ", ".join([f"{len(self.matched):,} matched", *said])
