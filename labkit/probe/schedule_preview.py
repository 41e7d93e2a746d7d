"""What `preview_schedule` returns: the learning rates to come, and what is wrong."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from labkit.probe.finding import Finding, listed, plain, told

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito's palette; the dashes tell the lines apart without colour
_LINES = (
    ("#0072B2", "-"),
    ("#D55E00", "--"),
    ("#009E73", "-."),
    ("#CC79A7", ":"),
)


@dataclass(frozen=True, repr=False, eq=False)
class SchedulePreview:
    """The learning rates that a run would use.

    Attributes:
        rates: learning rates by parameter group, then by optimizer step; fewer than
            `steps` where a scheduler raises.
        steps: optimizer steps of the run.
        scheduler_steps: how often the schedulers are stepped in it.
        schedulers: their names, in the order they are stepped.
        findings: what is wrong.
        notes: what is worth knowing, and what could not be previewed.
        marks: the steps that the picture marks: where a finding shows.
    """

    rates: tuple[tuple[float, ...], ...]
    steps: int
    scheduler_steps: int
    schedulers: tuple[str, ...]
    findings: tuple[Finding, ...]
    notes: tuple[str, ...]
    marks: tuple[int, ...]

    def __repr__(self) -> str:
        found = len(self.findings)
        said = f"{found} finding{'s' * (found != 1)}" if found else "no findings"
        return (
            f"<SchedulePreview: {', '.join(self.schedulers)} over {self.steps:,} "
            f"steps, {self._course(0)}; {said}>"
        )

    def __str__(self) -> str:
        return told(repr(self), self.findings)

    def _repr_markdown_(self) -> str:
        rows = [
            "| parameter group | first | highest | lowest | last |",
            "|---|--:|--:|--:|--:|",
        ]
        for place, rates in enumerate(self.rates):
            figures = (rates[0], max(rates), min(rates), rates[-1])
            rows.append(f"| {place} | {' | '.join(f'{r:.3g}' for r in figures)} |")
        names = ", ".join(self.schedulers)
        rows += [
            "",
            f"{plain(names)}: {self.steps:,} optimizer steps, "
            f"{self.scheduler_steps:,} scheduler steps.",
            "",
            listed(self.findings),
        ]
        if self.notes:
            rows += ["", *(f"- {plain(note)}" for note in self.notes)]
        return "\n".join(rows)

    def _course(self, group: int) -> str:
        rates = self.rates[group]
        return (
            f"rate {rates[0]:.3g} first, {max(rates):.3g} at most, {rates[-1]:.3g} last"
        )

    def plot(self) -> "Figure":
        """Draw the learning rate of each step, one line for each parameter group.

        Returns:
            A matplotlib Figure on white that is not shown yet; the sentence that says
            what it shows, for use as alt text, is its label (`figure.get_label()`).

        Example:
            >>> figure = preview.plot()
            >>> figure.savefig("schedule.png")
        """
        from matplotlib.figure import Figure

        figure = Figure(figsize=(8, 3.5), facecolor="white", layout="constrained")
        axes = figure.add_subplot()
        for place, rates in enumerate(self.rates):
            color, dashes = _LINES[place % len(_LINES)]
            axes.plot(
                range(len(rates)),
                rates,
                dashes,
                color=color,
                drawstyle="steps-post",
                label=f"parameter group {place}",
            )
        for step in self.marks:
            highest = max((rates[step] for rates in self.rates), default=0.0)
            axes.plot(step, highest, "kv", ms=8, clip_on=False)
        axes.set_xlabel("optimizer step (triangle: a finding)")
        axes.set_ylabel("learning rate")
        axes.spines[["top", "right"]].set_visible(False)
        if len(self.rates) > 1:
            axes.legend()
        figure.set_label(self._sentence())
        return figure

    def _sentence(self) -> str:
        courses = [
            (f"group {place}: " if len(self.rates) > 1 else "") + self._course(place)
            for place in range(len(self.rates))
        ]
        at = ", ".join(f"{step:,}" for step in self.marks)
        marked = f"; findings are marked at step {at}" if self.marks else ""
        return (
            f"Learning rate over {self.steps:,} optimizer steps: "
            f"{'; '.join(courses)}{marked}."
        )
