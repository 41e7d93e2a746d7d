"""The modes of a model's modules, and what is wrong with them: `mode_report`."""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn.parameter import is_lazy

from labkit.probe.finding import Finding, names
from labkit.probe.mode_compare import judge_forwards
from labkit.probe.mode_evaluate import watch_evaluation
from labkit.probe.mode_flags import Flags
from labkit.probe.mode_forward import EvalForward, Refused, called
from labkit.probe.mode_result import ModeReport
from labkit.probe.model_state import ModelState, WithoutGradients
from labkit.probe.nested import copied
from labkit.probe.rng import kept_rng


def mode_report(
    model: nn.Module,
    inputs: Any = None,
    evaluate: Callable[[], Any] | None = None,
) -> ModeReport:
    """Look for faults of train and eval mode in a model.

    Found are

    - modules in another mode than the model whose parameters are trained (others, such
      as a frozen backbone in eval mode, are notes);
    - frozen parameters beside normalisation statistics that still move;
    - dropout that is active in eval mode, or another forward that is random there;
    - outputs that depend on the other samples of the batch in eval mode, and buffers
      that a forward changes there;
    - an evaluation that runs modules in train mode or changes buffers or parameters.

    The first two need the model alone. The forwards need `inputs`, or take those that
    `evaluate` first gives the model. They run without recording gradients, on copies
    of the inputs, four at most besides the evaluation (seven where they differ).

    The model is left as it was, bit by bit: parameters, buffers, gradients, modes,
    attributes, hooks; the random state of torch, NumPy and Python too. Objects of
    other kinds that a module holds, and what code outside of it keeps, are not
    reached. It takes memory for a second copy of parameters and buffers.

    Args:
        model: any module.
        inputs: one argument, a tuple of arguments, or a dict of arguments by name; the
            first axis of the tensors in it is taken as the batch.
        evaluate: runs one evaluation of the model, as the loop does; called once,
            without arguments.

    Returns:
        A `ModeReport`: `findings`, `notes`, and `unchecked`, what it could not see.

    Raises:
        TypeError: `model` is no module, or `evaluate` no function.
        ValueError: lazy parameters without a shape, a model in which there is nothing
            to check, or inputs that the model refuses.
        RuntimeError: `evaluate` raised.

    Example:
        >>> model = nn.Sequential(nn.BatchNorm1d(3), nn.Linear(3, 2))
        >>> model[0].requires_grad_(False)
        >>> mode_report(model)
        <ModeReport: train mode, 3 modules; 1 finding, 2 not checked>
    """
    _check(model, inputs, evaluate)
    # a compiled model is judged by what was compiled: a change of mode recompiles
    model = getattr(model, "_orig_mod", model)
    flags = Flags(model)
    findings, notes = flags.judge_modes()
    unchecked: list[str] = []
    frozen = flags.judge_frozen()
    findings += [frozen] if frozen else []
    with kept_rng(), WithoutGradients(model):
        state = ModelState(model)
        try:
            if evaluate is None:
                unchecked.append("an evaluation (give evaluate)")
            else:
                watched = watch_evaluation(model, evaluate, state)
                findings += watched.findings
                notes += watched.notes
                inputs = watched.inputs if inputs is None else inputs
            if inputs is None:
                unchecked.append(
                    "dropout and randomness in eval mode, outputs that depend on the "
                    "batch (give inputs)"
                )
                if own := flags.own_kind():
                    unchecked.append(
                        f"whether buffers of frozen modules move: {names(own)} "
                        "(give inputs)"
                    )
            else:
                findings += _judge_own_kind(flags, inputs, state)
                judge_forwards(
                    EvalForward(model, inputs, state),
                    inputs,
                    findings,
                    notes,
                    unchecked,
                )
        except Refused as refusal:
            said = refusal.__cause__
            raise ValueError(
                "mode_report ran the model on the inputs, and it raised "
                f"{type(said).__name__}: {said}"
            ) from said
        finally:
            state.put_back()
    return ModeReport(
        training=model.training,
        modules=len(flags.modules),
        differing=len(flags.differing),
        findings=tuple(findings),
        notes=tuple(notes),
        unchecked=tuple(unchecked),
    )


def _check(model: Any, inputs: Any, evaluate: Any) -> None:
    if not isinstance(model, nn.Module):
        raise TypeError(
            "mode_report: model is a torch.nn.Module, and got "
            f"{'the class ' if isinstance(model, type) else ''}"
            f"{model.__name__ if isinstance(model, type) else type(model).__name__}."
        )
    if evaluate is not None and not callable(evaluate):
        raise TypeError(
            "mode_report: evaluate is a function without arguments, and got "
            f"{type(evaluate).__name__}."
        )
    held = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    lazy = [name for name, tensor in held.items() if is_lazy(tensor)]
    if lazy:
        raise ValueError(
            f"mode_report: {names(lazy)} {'have' if len(lazy) > 1 else 'has'} no shape "
            "yet, since the module is lazy: run one batch through the model first."
        )
    if not held and inputs is None and evaluate is None:
        raise ValueError(
            f"mode_report: {type(model).__name__} has no parameters and no buffers, so "
            "there is nothing to check without inputs or evaluate: give one of them."
        )


def _judge_own_kind(flags: Flags, inputs: Any, state: ModelState) -> list[Finding]:
    """Run frozen modules of the user's own as they are, and see if buffers move."""
    own = flags.own_kind()
    buffers = {
        f"{name}.{key}" if name else key: buffer
        for name, module in own.items()
        for key, buffer in module.named_buffers(recurse=False)
    }
    if not buffers:
        return []
    try:
        with torch.no_grad():
            called(flags.model, copied(inputs))
        moved = state.changed(buffers)
    except Exception as error:
        raise Refused from error
    finally:
        state.put_back()
    if not moved:
        return []
    what = "the parameters are frozen and a forward in train mode changes buffers"
    return [Finding(what, names(moved), "likely", "5.1")]
