"""What a probe found: the fault, where it is, how sure that is, the page about it."""

from collections.abc import Iterable
from dataclasses import dataclass

SURE = ("certain", "likely", "worth a look")
"""How sure a probe can be: it saw the fault; it saw its signs; it may be meant so."""


@dataclass(frozen=True)
class Finding:
    """One fault that a probe found.

    Attributes:
        what: one sentence, without a full stop at its end.
        where: the parameter, module, line or cell.
        sure: "certain", "likely" or "worth a look".
        page: the number of the page that explains it, such as "3.2".

    Raises:
        ValueError: `sure` is none of the three.

    Example:
        >>> print(Finding("it is never stepped", "head.weight", "certain", "3.2"))
        head.weight: it is never stepped (certain, see page 3.2)
    """

    what: str
    where: str
    sure: str
    page: str

    def __post_init__(self) -> None:
        if self.sure not in SURE:
            accepted = ", ".join(repr(word) for word in SURE)
            raise ValueError(
                f"Finding: sure is one of {accepted}, and got {self.sure!r}."
            )

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        return f"{place}{self.what} ({self.sure}, see page {self.page})"

    def _repr_markdown_(self) -> str:
        place = f"{code(self.where)}: " if self.where else ""
        return f"{place}{plain(self.what)} (**{self.sure}**, see page {self.page})"


def listed(findings: Iterable[Finding]) -> str:
    """Return the findings as a Markdown list, the surest first, or "No findings."."""
    ordered = sorted(findings, key=lambda finding: SURE.index(finding.sure))
    lines = [f"- {finding._repr_markdown_()}" for finding in ordered]
    return "\n".join(lines) or "No findings."


def told(report: str, findings: Iterable[Finding]) -> str:
    """Return a report's one line with its findings under it: what a script prints."""
    ordered = sorted(findings, key=lambda finding: SURE.index(finding.sure))
    return "\n".join([report, *(f"- {finding}" for finding in ordered)])


def names(found: Iterable[str], most: int = 3) -> str:
    """Return names in one line, the first few of many: "a, b, c and 4 more"."""
    found = list(found)
    more = len(found) - most
    if more <= 0:
        return ", ".join(found)
    return f"{', '.join(found[:most])} and {more} more"


def code(text: str) -> str:
    """Return a Markdown code span that backticks in `text` cannot break."""
    fence = "`"
    while fence in text:
        fence += "`"
    pad = " " if fence != "`" else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def plain(text: str) -> str:
    """Return `text` as Markdown that shows it as it is, its code spans kept."""
    pieces = text.split("`")
    for place in range(0, len(pieces), 2):
        for mark in "\\*_[]<>|~":
            pieces[place] = pieces[place].replace(mark, f"\\{mark}")
    return "`".join(pieces)
