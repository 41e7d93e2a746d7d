"""What `track_memory` returns: bytes at the peak by kind, in words and as a picture."""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from labkit.measure.memory_history import History, Moment

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito's palette and grey; the hatch tells kinds apart without colour
_LOOKS = {
    "parameter": ("#0072B2", ""),
    "gradient": ("#D55E00", "//"),
    "optimizer state": ("#CC79A7", "xx"),
    "activation": ("#E69F00", ".."),
    "temporary": ("#56B4E9", "\\\\"),
    "input": ("#009E73", "++"),
    "other": ("#999999", "--"),
}

_UNSEEN = (
    "Counted: storages made by torch's operators in the block, and those given to it. "
    "Not seen: what an operator uses while it runs (a convolution's or a sort's "
    "scratch), and memory of NumPy and other libraries."
)


@dataclass(frozen=True, repr=False, eq=False)
class MemoryTrace:
    """Tensor memory over a block; its fields are there once the block has ended.

    Attributes:
        peak_bytes: most bytes that were counted at one time.
        live_bytes: bytes still counted when the block ended.
        by_kind: bytes of each kind at the peak; they add up to `peak_bytes`.
        allocated_bytes: bytes of all storages made in the block, freed ones included.
        allocations: how many storages that were.
        allocator_peak_bytes: on CUDA, the peak of torch's allocator on the current
            device during the block, with all it holds: scratch of kernels, and
            tensors that were not given. None where CUDA is not in use.
        history: what `timeline` is made of.
    """

    peak_bytes: int
    live_bytes: int
    by_kind: dict[str, int]
    allocated_bytes: int
    allocations: int
    allocator_peak_bytes: int | None
    history: History

    @cached_property
    def timeline(self) -> tuple[Moment, ...]:
        """The memory after each event, from the block's beginning to its end.

        In blocks of more than 2,000 events, the highest moment of each stretch.
        """
        return self.history.timeline()

    @classmethod
    def awaited(cls) -> "MemoryTrace":
        """Return a trace that `fill` completes when its block ends."""
        return cls.__new__(cls)

    def fill(self, **fields: Any) -> None:
        """Set the fields of an awaited trace, once."""
        vars(self).update(fields)

    # only called for what is missing: a field of an awaited trace
    def __getattr__(self, name: str) -> Any:
        if name == "timeline" or name in MemoryTrace.__dataclass_fields__:
            raise AttributeError(
                f"{name} was read inside the with block, and track_memory knows it "
                "only when the block has ended: read it after the block."
            )
        raise AttributeError(f"a MemoryTrace has no {name!r}")

    def __repr__(self) -> str:
        if "peak_bytes" not in vars(self):
            return "<MemoryTrace: its block has not ended>"
        kinds = ", ".join(f"{kind} {_size(n)}" for kind, n in self._kinds().items())
        return (
            f"<MemoryTrace: peak {_size(self.peak_bytes)}"
            + (f" ({kinds})" if kinds else "")
            + f"; {_size(self.live_bytes)} live at the end>"
        )

    def _repr_markdown_(self) -> str:
        if "peak_bytes" not in vars(self):
            return f"`{self!r}`"
        rows = ["| at the peak | bytes | |", "|---|--:|--:|"]
        rows += [
            f"| {kind} | {n:,} | {_size(n)} |" for kind, n in self._kinds().items()
        ]
        rows += [
            f"| **all** | **{self.peak_bytes:,}** | **{_size(self.peak_bytes)}** |",
            "",
            f"Live at the end: {self.live_bytes:,} bytes. Made in the block: "
            f"{self.allocations:,} storages, {self.allocated_bytes:,} bytes. {_UNSEEN}",
        ]
        if self.allocator_peak_bytes is not None:
            rows[-1] += (
                f" CUDA's allocator held {self.allocator_peak_bytes:,} bytes at its "
                "peak, all of its tensors and scratch included."
            )
        return "\n".join(rows)

    def _kinds(self) -> dict[str, int]:
        return {kind: n for kind, n in self.by_kind.items() if n}

    def plot(self) -> "Figure":
        """Draw the timeline, stacked by kind, with the peak marked.

        Returns:
            A matplotlib Figure on white that is not shown yet; the sentence that says
            what it shows, for use as alt text, is its label (`figure.get_label()`).

        Example:
            >>> figure = trace.plot()
            >>> figure.savefig("memory.png")
        """
        from matplotlib.figure import Figure

        figure = Figure(figsize=(8, 4), facecolor="white", layout="constrained")
        axes = figure.add_subplot()
        unit, scale = _unit(self.peak_bytes)
        events = [moment.event for moment in self.timeline]
        below = [0.0] * len(events)
        for kind, (color, hatch) in _LOOKS.items():
            amounts = [moment.by_kind.get(kind, 0) / scale for moment in self.timeline]
            if not any(amounts):
                continue
            above = [a + b for a, b in zip(below, amounts, strict=True)]
            axes.fill_between(
                events,
                below,
                above,
                step="post",
                facecolor=color,
                edgecolor="white",
                linewidth=0,
                hatch=hatch,
                label=f"{kind}: {_size(self.by_kind[kind])} at the peak",
            )
            below = above
        highest = max(self.timeline, key=lambda moment: moment.bytes)
        axes.plot(highest.event, highest.bytes / scale, "kv", ms=7, clip_on=False)
        axes.annotate(
            f"peak {_size(self.peak_bytes)}",
            (highest.event, highest.bytes / scale),
            xytext=(0, 7),
            textcoords="offset points",
            ha="center",
        )
        axes.set_ylim(0, max(self.peak_bytes / scale * 1.15, 1e-9))
        axes.set_xlabel("events: a storage came or went")
        axes.set_ylabel(f"tensor memory ({unit})")
        axes.spines[["top", "right"]].set_visible(False)
        if axes.get_legend_handles_labels()[1]:
            # in the order of the stack, beside it: it never covers the picture
            figure.legend(loc="outside right upper", reverse=True, handleheight=1.4)
        figure.set_label(self._sentence())
        return figure

    def _sentence(self) -> str:
        kinds = ", ".join(f"{kind} {_size(n)}" for kind, n in self._kinds().items())
        return (
            f"Tensor memory over {self.timeline[-1].event:,} events, stacked by kind: "
            f"it peaks at {_size(self.peak_bytes)}"
            + (f" ({kinds})" if kinds else "")
            + f" and ends at {_size(self.live_bytes)}."
        )


def _unit(n: int) -> tuple[str, int]:
    for unit, scale in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if n >= scale:
            return unit, scale
    return "B", 1


def _size(n: int) -> str:
    """Write bytes for people: decimal units, three digits."""
    unit, scale = _unit(n)
    amount = n / scale
    digits = 0 if scale == 1 or amount >= 100 else 1 if amount >= 10 else 2
    return f"{amount:,.{digits}f} {unit}"
