"""What `gradient_report` returns: a row for each parameter, and what was found."""

from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from labkit.probe.finding import Finding, code, listed, plain

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LONGEST = 12  # rows of the short table


@dataclass(frozen=True)
class ParameterRow:
    """One parameter and its gradient.

    Attributes:
        name: its first name in the model.
        also: further names, where modules share it.
        shape: its sizes.
        requires_grad: whether autograd was asked for its gradient.
        gradient: "none", "zero", "finite" or "NaN or Inf".
        norm: the gradient's 2-norm (of a sparse one, of its summed-up values), where
            its optimizer steps with it; None without a gradient.
        in_optimizer: whether an optimizer that was given or stepped holds it; None
            where there was none.
        moved: whether its values changed in the step; None where no optimizer stepped.
    """

    name: str
    also: tuple[str, ...]
    shape: tuple[int, ...]
    requires_grad: bool
    gradient: str
    norm: float | None
    in_optimizer: bool | None
    moved: bool | None


@dataclass(frozen=True, repr=False)
class GradientReport:
    """Where a model's gradients come from, arrive and go.

    Attributes:
        rows: one for each parameter of the model, in its order.
        findings: the faults that were found.
        notes: what is no fault but needs saying, and what could not be looked at.
        runs: how often the step ran, or the loss was differentiated.
    """

    rows: tuple[ParameterRow, ...]
    findings: tuple[Finding, ...]
    notes: tuple[str, ...]
    runs: int

    def __repr__(self) -> str:
        said = f"<GradientReport: {self._counts()}"
        if not self.findings:
            return f"{said}; no findings>"
        found = "; ".join(str(finding) for finding in self.findings)
        return f"{said}; {_count(len(self.findings), 'finding')}: {found}>"

    def _repr_markdown_(self) -> str:
        lines = [f"**Gradients of {self._counts()}**", "", listed(self.findings)]
        if self.notes:
            lines += ["", *(f"- Note: {plain(note)}" for note in self.notes)]
        lines += [
            "",
            "| parameter | gradient | in the optimizer | moved |",
            "|---|---|---|---|",
        ]
        groups = [
            (key, [row.name for row in rows])
            for key, rows in groupby(self.rows, key=_looks)
        ]
        for (gradient, held, moved), names in groups[:_LONGEST]:
            first = code(names[0])
            if len(names) > 1:
                first += f" to {code(names[-1])} ({len(names)})"
            lines.append(f"| {first} | {gradient} | {held} | {moved} |")
        if len(groups) > _LONGEST:
            left = sum(len(names) for _, names in groups[_LONGEST:])
            lines.append(f"| … {left} more, in `.rows` | | | |")
        return "\n".join(lines)

    def _counts(self) -> str:
        kinds: dict[str, int] = {}
        for row in self.rows:
            kind = row.gradient if row.requires_grad else "frozen"
            kinds[kind] = kinds.get(kind, 0) + 1
        listing = ", ".join(f"{n} {kind}" for kind, n in kinds.items())
        return f"{_count(len(self.rows), 'parameter')} ({listing})"

    def plot(self) -> "Figure":
        """Draw each parameter's gradient norm on a log scale, in the model's order.

        Returns:
            A matplotlib Figure on white that is not shown yet; the sentence that says
            what it shows, for use as alt text, is its label (`figure.get_label()`).

        Example:
            >>> figure = gradient_report(model).plot()
            >>> figure.savefig("gradients.png")
        """
        from matplotlib.figure import Figure

        rows = self.rows
        height = min(1.2 + 0.22 * len(rows), 14)
        figure = Figure(figsize=(8, height), facecolor="white", layout="constrained")
        axes = figure.add_subplot()
        finite = [
            (r.norm, i)
            for i, r in enumerate(rows)
            if r.norm is not None and r.gradient == "finite"
        ]
        axes.plot([n for n, _ in finite], [i for _, i in finite], "o", color="#0072B2")
        axes.set_xscale("log")
        for place, row in enumerate(rows):
            if row.gradient != "finite":
                axes.annotate(
                    row.gradient if row.requires_grad else "frozen",
                    (0.01, place),
                    xycoords=("axes fraction", "data"),
                    va="center",
                    color="#D55E00" if row.gradient == "NaN or Inf" else "black",
                )
        step = -(-len(rows) // 60)  # as many names as can be read
        axes.set_yticks(
            range(0, len(rows), step), [r.name for r in rows[::step]], parse_math=False
        )
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.set_xlabel("norm of the gradient")
        axes.spines[["top", "right"]].set_visible(False)
        figure.set_label(
            f"Gradient norms of {self._counts()}, one point each"
            + (
                f", from {min(finite)[0]:.1g} to {max(finite)[0]:.1g}."
                if finite
                else "."
            )
        )
        return figure


def _looks(row: ParameterRow) -> tuple[str, str, str]:
    answers = {True: "yes", False: "no", None: "not known"}
    gradient = row.gradient if row.requires_grad else f"{row.gradient} (frozen)"
    return gradient, answers[row.in_optimizer], answers[row.moved]


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}{'s' * (number != 1)}"
