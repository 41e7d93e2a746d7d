"""What a gradient report says beside its findings: no faults, but to be known."""

from collections.abc import Iterable

import torch
from torch.optim import Optimizer

from labkit.probe.finding import names
from labkit.probe.gradient_result import ParameterRow
from labkit.probe.step_watch import StepWatch


def notes(
    watch: StepWatch, rows: Iterable[ParameterRow], given: list[Optimizer]
) -> list[str]:
    """Return one sentence for each thing that a reader of the rows should know."""
    rows = list(rows)
    said = []
    shared = [f"{row.name} = {' = '.join(row.also)}" for row in rows if row.also]
    if shared:
        said.append(f"Shared parameters have one row: {names(shared)}.")
    kinds = {
        "sparse": [
            track.name
            for track in watch.tracks.values()
            if track.parameter.grad is not None
            and track.parameter.grad.layout != torch.strided
        ],
        "complex": [
            track.name
            for track in watch.tracks.values()
            if track.parameter.is_complex()
        ],
    }
    if kinds["sparse"]:
        said.append(
            f"Sparse gradients are judged by their summed-up values: "
            f"{names(kinds['sparse'])}."
        )
    if kinds["complex"]:
        said.append(
            f"Complex gradients are judged by their magnitudes: "
            f"{names(kinds['complex'])}."
        )
    if watch.arrivals.graph_kept:
        said.append(
            "Gradients have a graph of their own (create_graph=True): only their values "
            "are looked at, and that graph lives until they are set to None."
        )
    if watch.skipped:
        said.append(
            "The GradScaler left out a step, as it does until its scale fits: what was "
            "not stepped is not judged."
        )
    if all(row.gradient == "none" for row in rows) and not watch.backwards:
        said.append("No parameter has a gradient: call backward first, or give step.")
    idle = [one for one in given if watch.stepped and id(one) not in watch.stepped]
    if idle and not watch.skipped:
        kinds_idle = names(type(one).__name__ for one in idle)
        said.append(f"An optimizer that was given never stepped: {kinds_idle}.")
    still = [
        row.name
        for row in rows
        if row.moved is False and row.gradient == "finite" and row.in_optimizer
    ]
    if still and not watch.skipped:
        said.append(
            f"Stepped with a gradient, yet not moved (a learning rate of zero?): "
            f"{names(still)}."
        )
    return said
