"""Judges what a watched step did with its gradients."""

from collections.abc import Iterable

import torch

from labkit.probe.finding import Finding, names
from labkit.probe.gradient_chains import chain_findings, constant_findings
from labkit.probe.gradient_result import ParameterRow
from labkit.probe.gradient_values import one, value_findings
from labkit.probe.place import at
from labkit.probe.step_watch import StepWatch
from labkit.probe.tracks import Track


def findings(watch: StepWatch, rows: Iterable[ParameterRow]) -> list[Finding]:
    """Return what is wrong with the gradients of a watched step.

    Args:
        watch: what was seen.
        rows: one row for each parameter of the model.

    Returns:
        The findings, those of one kind and cause together in one.
    """
    by_name = {row.name: row for row in rows}
    tracks = list(watch.tracks.values())
    return [
        *_hidden(watch),
        *_never_stepped(watch, tracks, by_name),
        *chain_findings(watch, tracks, by_name),
        *constant_findings(watch),
        *value_findings(watch, tracks, by_name),
        *_edited(watch),
    ]


def _held(watch: StepWatch) -> dict[int, torch.Tensor]:
    return {
        id(parameter): parameter
        for optimizer in watch.optimizers.values()
        for group in optimizer.param_groups
        for parameter in group["params"]
    }


def _hidden(watch: StepWatch) -> list[Finding]:
    held = _held(watch)
    left = [leaf for key, leaf in watch.strangers.items() if key not in held]
    ids = {id(leaf) for leaf in left}
    named = [name for name, leaf in watch.known.hidden.items() if id(leaf) in ids]
    unknown = [
        f"a parameter of shape {tuple(leaf.shape)}"
        for leaf in left
        if watch.known.name(leaf) is None and isinstance(leaf, torch.nn.Parameter)
    ]
    found = []
    if named:
        found.append(
            Finding(
                "received gradient, but the model doesn't register it: parameters(), "
                "to() and state_dict() pass it over, and no optimizer holds it",
                names(named),
                "certain",
                "2.3",
            )
        )
    if unknown:
        found.append(
            Finding(
                "received gradient, but neither the model nor an optimizer holds it",
                names(unknown),
                "worth a look",
                "2.3",
            )
        )
    return found


def _never_stepped(
    watch: StepWatch, tracks: list[Track], rows: dict[str, ParameterRow]
) -> list[Finding]:
    left = [
        track
        for track in tracks
        if rows[track.name].in_optimizer is False
        and rows[track.name].requires_grad
        and track.seen - {"none"}
    ]
    # what the optimizer holds instead: the parameters of a layer that was replaced
    old = [
        parameter
        for key, parameter in _held(watch).items()
        if key not in watch.tracks
        and key not in watch.strangers
        and parameter.grad is None
    ]
    rest = ""
    if old:
        shapes = names(str(tuple(parameter.shape)) for parameter in old)
        rest = (
            f"; the optimizer holds parameters of shape {shapes} instead, which are "
            "not the model's and got no gradient: it was built before a layer was "
            "replaced"
        )
    what = "received gradient, but no optimizer holds it, so it is never stepped"
    return one(left, what, "certain" if old else "likely", "3.2", rest)


def _edited(watch: StepWatch) -> list[Finding]:
    found = []
    seen = set()
    for edit in watch.functions.edits.found:
        module = watch.known.module(edit.module)
        key = (module, edit.by, edit.place)
        if key in seen:
            continue
        seen.add(key)
        inside = watch.known.module(edit.inside)
        found.append(
            Finding(
                f"edits its own input in place, by {at(edit.by, edit.place)}, and the "
                f"input is read again, by {at(edit.reader, edit.read_at)}: what is "
                "read there is the edited value",
                module if inside == module else f"{module}, in {inside}",
                "certain" if edit.after else "worth a look",
                "2.2",
            )
        )
    return found
