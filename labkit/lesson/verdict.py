"""What the article says, judged by what the page measured."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from labkit.lesson.evidence import LabError, one_line, page_call, say, short, strict
from labkit.lesson.registry import find

JUDGEMENTS = {
    "holds": "holds",
    "conditions": "holds, with conditions",
    "incomplete": "incomplete",
    "outdated": "outdated",
    "wrong": "wrong",
    "unmeasured": "not measured here",
}


@dataclass(frozen=True)
class Claim:
    """One statement of the article, our judgement, and the values that bear it out.

    `article` is the statement in our words.  `measured` makes the table's text from the
    page's values: a template with {names}, or a function of them (coarse where values
    vary from run to run).  `agrees` says whether the values bear the judgement out.
    `source` is the page that settles what cannot be measured here.
    """

    id: str
    judgement: str
    article: str
    measured: str | Callable[[dict[str, Any]], str]
    agrees: Callable[[dict[str, Any]], bool]
    source: str = ""

    def __post_init__(self) -> None:
        if self.judgement not in JUDGEMENTS:
            raise LabError(
                f"claim {self.id}: judgement is one of {', '.join(JUDGEMENTS)}; "
                f"{self.judgement!r} came"
            )


@page_call
def verdicts(**measured: dict[str, Any]) -> None:
    """Show one table of what the article says and what this page measured.

    Each keyword is a claim's id with its dot written as `_` and holds the measured
    values by name: `C2_1c=dict(same=True)`.  Raises LabError for an unknown claim or a
    missing value; under LABKIT_STRICT=1 AssertionError where the values do not bear the
    judgement out.
    """
    lines = ["| the article says | it | on this page |", "|---|---|---|"]
    records = []
    for name, values in measured.items():
        claim = find("claim", name.replace("_", "."))
        if not isinstance(values, dict):
            raise LabError(
                f"verdicts: {name} takes a dict of measured values; "
                f"{short(values, 40)} ({type(values).__name__}) came"
            )
        agrees, text = judged(claim, values)
        if not agrees and strict():
            raise AssertionError(
                f"claim {claim.id} is judged {claim.judgement!r}, but this page "
                f"measured {values}"
            )
        judgement = JUDGEMENTS[claim.judgement]
        if not agrees:
            text += " — **this machine measured otherwise than we did**"
        if claim.source:
            text += f" ([source]({claim.source}))"
        article, text = (part.replace("|", "\\|") for part in (claim.article, text))
        lines.append(f"| {article} | **{judgement}** | {text} |")
        records.append(
            {"claim": claim.id, "verdict": claim.judgement, "measured": plain(values)}
        )
    say("\n".join(lines), *records)


def judged(claim: Claim, values: dict[str, Any]) -> tuple[bool, str]:
    """Whether the values bear the judgement out, and the table's text about them."""
    try:
        agrees = bool(claim.agrees(values))
        if callable(claim.measured):
            return agrees, claim.measured(values)
        return agrees, claim.measured.format(**values)
    except KeyError as error:
        raise LabError(
            f"verdicts: {claim.id} needs the value {error}, and got "
            f"{', '.join(map(str, values)) or 'none'}"
        ) from None
    except Exception as error:
        raise LabError(
            f"verdicts: {claim.id} cannot be judged by {short(values)}: {one_line(error)}"
        ) from None


def plain(values: dict[str, Any]) -> dict[str, Any]:
    """The values as the page's metadata can keep them."""
    return {
        name: value if isinstance(value, bool | int | float | str) else short(value)
        for name, value in values.items()
    }
