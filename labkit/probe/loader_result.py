"""What `watch_loader` returns: times, samples, memory, and what is wrong."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from labkit.probe.finding import Finding, listed, plain
from labkit.probe.loader_advice import RULE, Suggestion, duration

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class BatchTimes:
    """One batch, in seconds since the loader was asked for an iterator.

    Attributes:
        worker: who made it; 0 also where there are no workers.
        began, ended: when it was begun and ready.
        asked, came: when the trainer asked for it and got it.
        done: when the step had computed with it.
    """

    worker: int
    began: float
    ended: float
    asked: float
    came: float
    done: float


@dataclass(frozen=True, repr=False)
class LoaderReport:
    """What a loader does: how fast, with which samples, and what is wrong with it.

    Attributes:
        batches: how many were watched; finished: whether that was the whole epoch.
        workers: how many processes read; start_method: how they are started, "" for 0.
        total_s: from the request for an iterator to the last step, in seconds.
        startup_s: until every worker that gave a batch had begun its first one.
        waiting_s: of waiting for batches after the first.
        computing_s: of the steps after the first batch; 0 without a step.
        waiting_share: waiting_s in both; None without a step.
        item_s: the median time to read one item; None for none.
        busy: the share of its time that each worker that gave a batch worked.
        seen_twice: samples that came more than once; of a stream: from several workers.
        never_seen: samples that did not come; None where that is not known.
        memory_bytes: each worker's proportional share at the end; () if not told.
        growth_bytes: the most that one worker has written to, where it was watched.
        unpicklable: what spawn could not send to a worker.
        changed: samples that differed when read twice from one random state.
        findings, suggestions: what is wrong, and what would be faster.
        notes: what is worth knowing, and what could not be looked at.
        timeline: a row for each batch.
    """

    batches: int
    finished: bool
    workers: int
    start_method: str
    total_s: float
    startup_s: float
    waiting_s: float
    computing_s: float
    waiting_share: float | None
    item_s: float | None
    busy: tuple[float, ...]
    seen_twice: int
    never_seen: int | None
    memory_bytes: tuple[int, ...]
    growth_bytes: int | None
    unpicklable: tuple[str, ...]
    changed: tuple[str, ...]
    findings: tuple[Finding, ...]
    suggestions: tuple[Suggestion, ...]
    notes: tuple[str, ...]
    timeline: tuple[BatchTimes, ...]

    def __repr__(self) -> str:
        found = len(self.findings)
        said = f"{found} finding{'s' * (found != 1)}" if found else "no findings"
        listing = "".join(f"; {finding}" for finding in self.findings)
        return f"<LoaderReport: {self._counts()}; {said}{listing}>"

    def _repr_markdown_(self) -> str:
        lines = [f"**Loader: {self._counts()}**", "", listed(self.findings), ""]
        lines += [f"- {plain(line)}" for line in self._measured()]
        if self.suggestions:
            lines += ["", "Suggestions:", ""]
            lines += [f"- {each._repr_markdown_()}" for each in self.suggestions]
        if self.notes:
            lines += ["", *(f"- Note: {plain(note)}" for note in self.notes)]
        return "\n".join(lines)

    def _counts(self) -> str:
        epoch = "the whole epoch" if self.finished else "not the whole epoch"
        who = f"{self.workers} workers ({self.start_method})"
        who = who if self.workers else "no workers"
        return f"{self.batches} batches ({epoch}), {who}"

    def _measured(self) -> list[str]:
        lines = [f"start-up {duration(self.startup_s)} of {duration(self.total_s)}"]
        if self.waiting_share is not None:
            side = "above" if self.waiting_share > RULE else "within"
            lines.append(
                f"the step waits for data {self.waiting_share:.0%} of the time, "
                f"{side} the article's {RULE:.0%}"
            )
        if self.item_s is not None:
            lines.append(f"reading an item takes {duration(self.item_s)}")
        if self.workers and self.busy:
            shares = ", ".join(f"{share:.0%}" for share in self.busy)
            lines.append(f"the workers are busy {shares} of their time")
        never = "not known" if self.never_seen is None else str(self.never_seen)
        lines.append(f"samples seen twice: {self.seen_twice}; never seen: {never}")
        if self.memory_bytes:
            sizes = ", ".join(f"{size / 2**20:.0f}" for size in self.memory_bytes)
            lines.append(f"the workers' share of memory: {sizes} MiB")
        if self.changed:
            lines.append(
                "in a pass of its own, samples that differ when read twice from one "
                f"random state: {', '.join(self.changed)}"
            )
        return lines

    def plot(self) -> "Figure":
        """Draw who worked when: the workers, the batches that wait, the trainer.

        Returns:
            A matplotlib Figure on white that is not shown yet; the sentence that says
            what it shows, for use as alt text, is its label (`figure.get_label()`).

        Example:
            >>> figure = watch_loader(loader).plot()
            >>> figure.savefig("loader.png")
        """
        from labkit.probe.loader_plot import draw

        return draw(self)
