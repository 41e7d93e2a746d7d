"""What an evaluation does to a model, and in which mode its modules ran."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import nn
from torch.nn.modules.dropout import _DropoutNd
from torch.nn.modules.module import register_module_forward_pre_hook

from labkit.probe.finding import Finding, names
from labkit.probe.mode_flags import depends_on_mode
from labkit.probe.model_state import ModelState
from labkit.probe.nested import copied


@dataclass
class Evaluation:
    """What was seen of an evaluation: findings, notes, and the model's first inputs."""

    findings: list[Finding]
    notes: list[str]
    inputs: Any = None


def watch_evaluation(
    model: nn.Module, evaluate: Callable[[], Any], state: ModelState
) -> Evaluation:
    """Run an evaluation once and judge it; the model is put back afterwards.

    Args:
        model: the model that it evaluates.
        evaluate: called without arguments.
        state: the model's state from before.

    Returns:
        What was seen.

    Raises:
        RuntimeError: the evaluation raised.
    """
    seen = Evaluation([], [])
    paths = {id(module): name for name, module in model.named_modules()}
    ran: dict[str, nn.Module] = {}
    called = False

    def note(module: nn.Module, args: Any) -> None:
        nonlocal called
        if id(module) not in paths:
            return
        called = True
        if not (module.training and depends_on_mode(module)):
            return
        # dropout alone, in a model that is in eval mode, is there to sample
        if model.training or not isinstance(module, _DropoutNd):
            ran.setdefault(paths[id(module)], module)

    def note_inputs(module: nn.Module, args: Any, kwargs: dict[str, Any]) -> None:
        # a call with both kinds can't be written as one value
        if seen.inputs is None and not (args and kwargs):
            seen.inputs = copied(kwargs or args)

    before = model.training
    hooks = [
        register_module_forward_pre_hook(note),
        model.register_forward_pre_hook(note_inputs, with_kwargs=True),
    ]
    try:
        evaluate()
        changed = state.changed(dict(model.named_buffers()))
        moved = state.changed(dict(model.named_parameters()))
        after = model.training
    except Exception as error:
        raise RuntimeError(
            f"mode_report ran evaluate(), and it raised {type(error).__name__}: {error}"
        ) from error
    finally:
        for hook in hooks:
            hook.remove()
        state.put_back()
    _judge_buffers(seen, changed, ran)
    if ran:
        what = (
            f"evaluate() ran {len(ran)} mode-dependent module"
            f"{'s' * (len(ran) != 1)} in train mode: what it measures depends on "
            f"{_effects(ran)}"
        )
        seen.findings.append(Finding(what, names(_shown(ran)), "certain", "5.1"))
    if moved:
        what = "evaluate() changed parameters"
        seen.findings.append(Finding(what, names(moved), "certain", "5.1"))
    if not called:
        seen.notes.append("evaluate() did not call the model or any of its modules.")
    if after != before:
        mode = "train" if after else "eval"
        seen.notes.append(
            f"evaluate() leaves the model in {mode} mode: the loop must call "
            f"`model.{'train' if before else 'eval'}()` after it."
        )
    return seen


def _judge_buffers(
    seen: Evaluation, changed: list[str], ran: dict[str, nn.Module]
) -> None:
    statistics = [name for name in changed if name.rpartition(".")[0] in ran]
    others = [name for name in changed if name not in statistics]
    if statistics:
        what = (
            "evaluate() changed running statistics: they took in the data that it "
            "evaluated on"
        )
        seen.findings.append(Finding(what, names(statistics), "certain", "5.1"))
    if others:
        what = "evaluate() changed buffers"
        seen.findings.append(Finding(what, names(others), "worth a look", "5.1"))


def _shown(ran: dict[str, nn.Module]) -> list[str]:
    return [name or type(module).__name__ for name, module in ran.items()]


def _effects(ran: dict[str, nn.Module]) -> str:
    norms = [m for m in ran.values() if getattr(m, "running_mean", None) is not None]
    effects = ["the other samples of each batch"] if norms else []
    if len(norms) < len(ran):
        effects.append("which units were dropped")
    return " and ".join(effects)
