"""Where a model's gradients come from, arrive and go: `gradient_report`."""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from labkit.probe.gradient_findings import findings
from labkit.probe.gradient_input import checked
from labkit.probe.gradient_notes import notes
from labkit.probe.gradient_result import GradientReport, ParameterRow
from labkit.probe.known import Known
from labkit.probe.rng import kept_rng
from labkit.probe.step_state import Keeper
from labkit.probe.step_watch import StepWatch

_RUNS = 2  # the second shows what the first left behind


def gradient_report(
    model: nn.Module,
    loss: Any = None,
    optimizer: Any = None,
    step: Callable[[], Any] | None = None,
) -> GradientReport:
    """Look at a model's gradients, and find where they are lost, spoilt or not used.

    Three ways, by what is given:

    - `step`, a function that does one full optimizer step of your own loop (all its
      micro-batches, the clipping, the scaler, the scheduler, the resets): it is run
      twice under hooks, and a third time if a gradient was NaN or Inf, to find the
      operator that made it first;
    - `loss`: it is differentiated, once or twice;
    - neither: the gradients that the parameters have now.

    Found are: tensors that receive gradient but aren't registered; parameters that
    receive gradient and are never stepped; parameters that no gradient reaches, with
    the line that cuts their chain; gradients that are zero, NaN or Inf; gradients that
    weren't reset before the step, or were between backward and step; clipping before
    unscaling; a module's input that is edited in place and read again.

    Put back afterwards are parameters, gradients, buffers, modes, optimizers, scalers,
    schedulers and the random numbers. Not reached is what the step itself keeps: its
    iterators, lists and files, inputs that it edits, and averages that it updates by
    hand. A loss that was computed before has to be computed anew. Compiled functions run
    uncompiled.

    Args:
        model: the model, whose parameters get a row each.
        loss: a scalar with a graph, or a function without arguments that returns one.
            Beside `step` it isn't needed, and only its own parameters are looked at,
            if it is a module.
        optimizer: an optimizer or several in a list. Those that step in `step` are
            found without being given.
        step: a function without arguments.

    Returns:
        A `GradientReport`: `rows`, `findings`, `notes`.

    Raises:
        TypeError: an argument that is none of these, such as a scheduler.
        ValueError: a model without parameters or with lazy ones; a loss that is not a
            scalar or has no graph; a step that raises, or in which no optimizer steps.

    Example:
        >>> model = nn.Linear(2, 1)
        >>> model(torch.ones(1, 2)).sum().backward()
        >>> gradient_report(model)
        <GradientReport: 2 parameters (2 finite); no findings>
    """
    optimizers = checked(model, loss, optimizer, step)
    known, keeper = Known(model), Keeper()
    watch = StepWatch(known, keeper)
    with kept_rng():
        try:
            for module in known.modules():
                keeper.module(module)
            for leaf in (*known.hidden.values(), *known.parameters.values()):
                keeper.parameter(leaf)
            needed = {n: p.requires_grad for n, p in known.parameters.items()}
            for one in optimizers:
                watch.meet(one)
            runs = _look(watch, loss, step)
            rows = _rows(watch, needed, stepped=step is not None)
            found = findings(watch, rows)
            said = notes(watch, rows, optimizers)
        finally:
            keeper.restore()
    return GradientReport(tuple(rows), tuple(found), tuple(said), runs)


def _look(watch: StepWatch, loss: Any, step: Callable[[], Any] | None) -> int:
    if step is None and loss is None:
        watch.look_at_once()
        return 0
    run = step if step is not None else _differentiation(watch, loss)
    name = "step" if step is not None else "loss"
    runs = 0
    with kept_rng():
        for _ in range(_RUNS if step is not None else 1):
            _run(watch, name, run)
            runs += 1
            if watch.not_finite() and not watch.skipped:
                break  # the parameters are NaN from here on
    if watch.not_finite():
        runs += _trace(watch, name, run, runs)
    if step is not None and not watch.stepped and not watch.skipped:
        raise ValueError(
            f"gradient_report: step ran {runs} times and no optimizer stepped in it, "
            "and it has to be one full optimizer step: give a function that also calls "
            "optimizer.step()."
        )
    return runs


def _trace(watch: StepWatch, name: str, run: Callable[[], Any], most: int) -> int:
    """Run again from the beginning, until the first NaN or Inf has been seen."""
    watch.keeper.rewind()
    watch.traced = traced = StepWatch(watch.known, watch.keeper)
    runs = 0
    while runs < most and not traced.bad_loss and traced.tracer.node is None:
        _run(traced, name, run, trace=True)
        runs += 1
    return runs


def _run(
    watch: StepWatch, name: str, run: Callable[[], Any], trace: bool = False
) -> None:
    try:
        watch.run(run, trace)
    except _Refused as refused:
        raise ValueError(str(refused)) from None
    except Exception as error:
        line = (str(error).strip().splitlines() or [""])[0].split(". ")[0]
        cuts = watch.functions.cuts
        hint = ""
        if cuts and "does not require grad" in line:
            hint = f" (the last cut of the chain: {cuts[-1].by}, {cuts[-1].place})"
        raise ValueError(
            f"gradient_report: {name} raised {type(error).__name__} when it was run: "
            f"{line.rstrip('.')}{hint}; everything was put back."
        ) from error


class _Refused(ValueError):
    """A mistake of the caller that shows while the loss is computed."""


def _differentiation(watch: StepWatch, loss: Any) -> Callable[[], None]:
    called = not isinstance(loss, torch.Tensor)
    watch.saw_forward = called

    def run() -> None:
        value = loss() if called else loss
        kind = type(value).__name__
        if isinstance(value, torch.Tensor):
            if value.numel() != 1:
                kind = f"a tensor of shape {tuple(value.shape)}"
            elif value.requires_grad:
                torch.autograd.backward(value, retain_graph=not called)
                return
            else:
                kind = "a tensor without a graph, so its chain is cut"
        raise _Refused(
            f"gradient_report: loss is a scalar tensor with a graph or a function that "
            f"returns one, and got {kind}."
        )

    return run


def _rows(
    watch: StepWatch, needed: dict[str, bool], stepped: bool
) -> list[ParameterRow]:
    held = {
        id(parameter)
        for optimizer in watch.optimizers.values()
        for group in optimizer.param_groups
        for parameter in group["params"]
    }
    judged = stepped and bool(watch.stepped)
    return [
        ParameterRow(
            name=track.name,
            also=watch.known.also.get(track.name, ()),
            shape=tuple(track.parameter.shape),
            requires_grad=needed[track.name],
            gradient=track.state,
            norm=track.norm,
            in_optimizer=key in held if watch.optimizers else None,
            moved=watch.keeper.moved(track.parameter) if judged else None,
        )
        for key, track in watch.tracks.items()
    ]
