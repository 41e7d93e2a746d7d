"""Judges the values that gradients had: NaN, zero, stale, clipped too early."""

import torch

from labkit.probe.finding import Finding, names
from labkit.probe.gradient_result import ParameterRow
from labkit.probe.graph import operator
from labkit.probe.place import at
from labkit.probe.step_watch import StepWatch
from labkit.probe.tracks import Track

_KINDS = {"clip": "clipped", "clamp": "clamped", "norm": "measured and changed"}


def value_findings(
    watch: StepWatch, tracks: list[Track], rows: dict[str, ParameterRow]
) -> list[Finding]:
    """Return what is wrong with the values of gradients, and with what they moved."""
    return [
        *_not_finite(watch, tracks),
        *_resets(tracks),
        *_scaled(tracks),
        *_zero(tracks, rows),
        *_not_moved(tracks, rows),
    ]


def one(
    tracks: list[Track], what: str, sure: str, page: str, rest: str = ""
) -> list[Finding]:
    """Return one finding for all the parameters, or none without any."""
    if not tracks:
        return []
    where = names(track.name for track in tracks)
    return [Finding(f"{what}{rest}", where, sure, page)]


def _not_finite(watch: StepWatch, tracks: list[Track]) -> list[Finding]:
    bad = [track for track in tracks if track.state == "NaN or Inf"]
    if not bad:
        return []
    traced = watch.traced
    sure, rest, kind = "certain", "", ""
    if traced is not None and traced.bad_loss:
        rest = "; the loss itself is NaN or Inf"
        if (first := traced.functions.first_nan) is not None:
            rest += f", and the first NaN came out of {at(*first)}"
    elif traced is not None and (origin := traced.tracer.node) is not None:
        kind = traced.tracer.kind
        _, place, _ = traced.functions.made.get(origin, ("", None, None))
        rest = (
            f"; the first {kind} of the backward came out of "
            f"{at(operator(origin), place)}, whose incoming gradient was finite"
        )
    if watch.skipped:
        if kind != "NaN":
            return []  # Inf under a scale that is still too large is how it is found
        sure = "likely"
    return one(bad, "the gradient holds NaN or Inf", sure, "3.3", rest)


def _resets(tracks: list[Track]) -> list[Finding]:
    stale = [track for track in tracks if track.stale]
    mixed = [track for track in tracks if track.mixed and not track.stale]
    emptied = [track for track in tracks if track.emptied]
    return [
        *one(
            stale,
            "the gradient was not reset after the step before: backward added to what "
            "that step had used",
            "certain",
            "3.2",
        ),
        *one(
            mixed,
            "the gradient adds up backwards from before and after another optimizer's "
            "step: detach the one that isn't meant for it, or reset in between",
            "worth a look",
            "3.3",
        ),
        *one(
            emptied,
            "the gradient was reset between backward and the optimizer's step",
            "certain",
            "3.2",
        ),
    ]


def _scaled(tracks: list[Track]) -> list[Finding]:
    found = []
    for kind, done in _KINDS.items():
        some = [track for track in tracks if track.clipped_scaled == kind]
        found += one(
            some,
            f"the gradient was {done} while it carried the GradScaler's scale: call "
            "scaler.unscale_(optimizer) before clipping",
            "likely" if kind == "norm" else "certain",
            "5.3",
        )
    return found


def _zero(tracks: list[Track], rows: dict[str, ParameterRow]) -> list[Finding]:
    # weights that start at zero cut others off until the first step has moved them
    started = any(row.moved is not False for row in rows.values())
    zero = [
        track
        for track in tracks
        if track.seen and track.seen <= {"zero", "none"} and "zero" in track.seen
        if started and not track.emptied and rows[track.name].in_optimizer is not False
    ]
    return one(
        zero,
        "the gradient is exactly zero: dead units, a factor of zero, or a function "
        "that is flat, such as round or sign",
        "worth a look",
        "3.3",
    )


def _not_moved(tracks: list[Track], rows: dict[str, ParameterRow]) -> list[Finding]:
    left = [
        track
        for track in tracks
        if track.stepped and track.state == "finite" and rows[track.name].moved is False
    ]
    low = [t for t in left if t.parameter.dtype in (torch.float16, torch.bfloat16)]
    return one(
        low,
        "stepped with a gradient, but the values stay the same: the update is smaller "
        "than its number format resolves",
        "likely",
        "5.3",
    )
