"""Judges parameters that no gradient reached: where their chain was cut."""

from labkit.probe.finding import Finding, names
from labkit.probe.functions import Cut, is_number
from labkit.probe.gradient_result import ParameterRow
from labkit.probe.step_watch import StepWatch
from labkit.probe.tracks import Track

_MOST = 3  # lines named in one finding


def chain_findings(
    watch: StepWatch, tracks: list[Track], rows: dict[str, ParameterRow]
) -> list[Finding]:
    """Return a finding for each cause that left parameters without a gradient.

    Parameters that no optimizer holds are left out: those are frozen on purpose.
    """
    if not watch.saw_forward and not any(track.seen - {"none"} for track in tracks):
        return []  # no backward has run yet
    causes: dict[tuple[str, str], list[str]] = {}
    for track in tracks:
        row = rows[track.name]
        lost = row.requires_grad and not track.received and row.gradient == "none"
        if lost and row.in_optimizer is not False:
            causes.setdefault(_cause(watch, track), []).append(track.name)
    return [
        Finding(
            f"no gradient arrives: {cause}",
            names(lost),
            sure,
            "3.2" if sure == "worth a look" else "3.3",
        )
        for (cause, sure), lost in causes.items()
    ]


def constant_findings(watch: StepWatch) -> list[Finding]:
    """Return a finding for each line of a module that made a number of a tensor."""
    lost = {key for key, track in watch.tracks.items() if not track.received}
    found: dict[str, Finding] = {}
    for cut in watch.functions.cuts:
        if cut.module is None or not is_number(cut) or cut.leaves & lost:
            continue  # not in a module, or told with what it has cut
        what = (
            f"{cut.by} makes a Python number of a tensor with a graph, and what is "
            f"computed with it has it as a constant, without error ({cut.place})"
        )
        where = watch.known.module(cut.module)
        found.setdefault(what, Finding(what, where, "worth a look", "3.3"))
    return list(found.values())


def _cause(watch: StepWatch, track: Track) -> tuple[str, str]:
    functions, key = watch.functions, id(track.parameter)
    if not watch.saw_forward:
        return "nothing that was differentiated depends on it", "likely"
    cuts: dict[str, Cut] = {}
    for cut in functions.cuts:
        if key in cut.leaves:
            cuts.setdefault(_told(watch, cut), cut)
    if cuts:
        told = names(cuts, _MOST)
        return f"the chain to the loss is cut by {told}", "certain"
    if key in functions.used[True]:
        return "it is used, but the result doesn't get into the loss", "likely"
    if key in functions.used[False]:
        return "it is only used with gradients switched off (no_grad)", "likely"
    return "nothing uses it", "worth a look"


def _told(watch: StepWatch, cut: Cut) -> str:
    module = f" in {watch.known.module(cut.module)}" if cut.module is not None else ""
    return f"{cut.by}{module} ({cut.place})"
