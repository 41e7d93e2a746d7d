"""What `compare` returns: timings side by side, in words, a table and a picture."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median, quantiles
from typing import TYPE_CHECKING

from labkit.measure.judgement import judge
from labkit.measure.wording import duration, number, unit_for

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST_TICKS = 400
_BLUE, _ORANGE = "#0072B2", "#D55E00"  # from Okabe and Ito's palette


@dataclass(frozen=True, repr=False, eq=False)
class Comparison:
    """Timings of alternatives, each judged against the first.

    Attributes:
        verdict: of the last alternative against the first: "faster", "slower",
            "no difference seen" or "too few runs".
        ratio: time of the last ÷ time of the first.
        interval: 99 % interval of that ratio; (0, inf) with too few runs.
        median_s: seconds per call, by name.
        verdicts, ratios, intervals: the same for all but the first, by name.
        pairs: how often each alternative was timed.
        threads: intra-op threads that torch had while it was measured.
        clock: "wall", or "processor" where that is the wall time without the pauses
            in which other programs had the processor (see `choose_times`).
        times_s: seconds per call in each block, by name, in the order taken.
    """

    verdict: str
    ratio: float
    interval: tuple[float, float]
    median_s: dict[str, float]
    verdicts: dict[str, str]
    ratios: dict[str, float]
    intervals: dict[str, tuple[float, float]]
    pairs: int
    threads: int
    clock: str
    times_s: dict[str, tuple[float, ...]]

    @classmethod
    def from_times(
        cls,
        times_s: Mapping[str, Sequence[float]],
        threads: int = 1,
        clock: str = "wall",
    ) -> "Comparison":
        """Judge timings that were taken in rounds, one of each alternative a round.

        Args:
            times_s: seconds per call, by name, the same number for each of at least
                two names; the first is what the others are compared with.
            threads: intra-op threads that torch had, for the record.
            clock: the clock that took the times, for the record.

        Returns:
            The judged comparison.

        Raises:
            ValueError: fewer than two names, no timings, or unequal numbers of them.

        Example:
            >>> Comparison.from_times({"a": [1.0] * 20, "b": [2.0] * 20}).ratio
            2.0
        """
        if len(times_s) < 2:
            raise ValueError(
                "Comparison.from_times needs the timings of at least two "
                f"alternatives, and got {len(times_s)}."
            )
        first, *others = times_s
        judged = {name: judge(times_s[first], times_s[name]) for name in others}
        last = judged[others[-1]]
        return cls(
            verdict=last.verdict,
            ratio=last.ratio,
            interval=last.interval,
            median_s={name: median(times) for name, times in times_s.items()},
            verdicts={name: result.verdict for name, result in judged.items()},
            ratios={name: result.ratio for name, result in judged.items()},
            intervals={name: result.interval for name, result in judged.items()},
            pairs=len(times_s[first]),
            threads=threads,
            clock=clock,
            times_s={name: tuple(times) for name, times in times_s.items()},
        )

    def __repr__(self) -> str:
        first = _one_line(next(iter(self.median_s)))
        said = [
            f"{_one_line(name)} against {first}: {verdict}, {number(ratio)}×"
            + _between(self.intervals[name])
            for (name, verdict), ratio in zip(
                self.verdicts.items(), self.ratios.values(), strict=True
            )
        ]
        return f"<Comparison: {'; '.join(said)}; {self._how()}>"

    def _repr_markdown_(self) -> str:
        first, *others = self.median_s
        rows = [
            "| alternative | a call | against the first | 99 % interval | verdict |",
            "|---|--:|--:|--:|---|",
            f"| {_escape(first)} | {duration(self.median_s[first])} | 1 | | |",
        ]
        rows += [
            f"| {_escape(name)} | {duration(self.median_s[name])} "
            f"| {number(self.ratios[name])}× "
            f"| {_between(self.intervals[name]).strip(' ()') or 'not known'} "
            f"| {self.verdicts[name]} |"
            for name in others
        ]
        return "\n".join([*rows, "", f"Medians of {self._how()}."])

    def _how(self) -> str:
        rounds = f"{self.pairs:,} round{'s' * (self.pairs != 1)} in random order"
        threads = f"{self.threads} thread{'s' * (self.threads != 1)}"
        return f"{rounds}, {threads}, {self.clock} time"

    def plot(self) -> "Figure":
        """Draw each alternative's timings as ticks on one row, its median marked.

        Returns:
            A matplotlib Figure on white that is not shown yet; the sentence that says
            what it shows, for use as alt text, is its label (`figure.get_label()`).

        Example:
            >>> figure = compare({"a": f, "b": g}).plot()
            >>> figure.savefig("comparison.png")
        """
        from matplotlib.figure import Figure

        names = list(self.median_s)
        largest = max(_range(times)[1] for times in self.times_s.values())
        unit, scale = unit_for(largest)
        figure = Figure(
            figsize=(7, 1 + 0.6 * len(names)), facecolor="white", layout="constrained"
        )
        axes = figure.add_subplot()
        for row, name in enumerate(names):
            # evenly taken: thousands of ticks would make one solid bar
            step = -(-self.pairs // _MOST_TICKS)
            ticks = [time / scale for time in self.times_s[name][::step]]
            axes.plot(ticks, [row] * len(ticks), "|", color=_BLUE, ms=14, alpha=0.25)
            axes.plot(self.median_s[name] / scale, row, "D", color=_ORANGE, ms=7)
        labels = [self._row(name) for name in names]
        axes.set_yticks(range(len(names)), labels, parse_math=False)
        axes.set_ylim(len(names) - 0.5, -0.5)
        smallest = min(_range(times)[0] for times in self.times_s.values())
        if largest > 20 * smallest:
            axes.set_xscale("log")
            axes.set_xlim(smallest / scale / 1.2, largest / scale * 1.2)
        else:
            axes.set_xlim(0, largest / scale * 1.1)
        axes.set_xlabel(f"{unit} a call (tick: one block; diamond: median)")
        axes.spines[["top", "right"]].set_visible(False)
        figure.set_label(
            "Timings of each alternative with their medians: "
            + "; ".join(label.replace("\n", ", ") for label in labels)
            + "."
        )
        return figure

    def _row(self, name: str) -> str:
        text = f"{_one_line(name)}\n{duration(self.median_s[name])}"
        if name in self.ratios:
            text += f", {number(self.ratios[name])}×, {self.verdicts[name]}"
        return text


def _range(times: Sequence[float]) -> tuple[float, float]:
    """Return the 5th and 95th percentile: a pause must not squeeze the picture."""
    if len(times) < 2:
        return times[0], times[0]
    cuts = quantiles(times, n=20, method="inclusive")
    return cuts[0], cuts[-1]


def _between(interval: tuple[float, float]) -> str:
    low, high = interval
    return f" ({number(low)} to {number(high)})" if low > 0 else ""


def _one_line(name: str) -> str:
    return " ".join(name.split())


def _escape(name: str) -> str:
    return re.sub(r"([\\`*_|<>\[\]$~#])", r"\\\1", _one_line(name))
