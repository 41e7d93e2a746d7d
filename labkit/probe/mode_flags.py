"""What the modes and the frozen parameters of a model show without running it."""

from collections.abc import Iterator
from typing import Any

from torch import nn
from torch.nn.modules.batchnorm import _NormBase
from torch.nn.modules.dropout import _DropoutNd

from labkit.probe.finding import Finding, names


def depends_on_mode(module: nn.Module) -> bool:
    """Return whether a module of torch computes otherwise in train and eval mode."""
    if isinstance(module, _DropoutNd):
        return module.p > 0
    if isinstance(module, nn.RNNBase | nn.MultiheadAttention):
        return module.dropout > 0
    if isinstance(module, _NormBase):
        return module.running_mean is not None
    return isinstance(module, nn.RReLU)


class Flags:
    """A model's modules by name, with what their modes and parameters say."""

    def __init__(self, model: nn.Module) -> None:
        self.model = model
        self.modules = dict(model.named_modules())
        self.differing = {
            name: module
            for name, module in self.modules.items()
            if module.training != model.training
        }

    def judge_modes(self) -> tuple[list[Finding], list[str]]:
        """Return findings and notes about modules in another mode than the model."""
        other = "eval" if self.model.training else "train"
        trained = [
            name
            for name, module in self._tops()
            if any(
                parameter.requires_grad
                for inside in module.modules()
                if inside.training != self.model.training
                for parameter in inside.parameters(recurse=False)
            )
        ]
        findings = []
        if trained:
            # a norm alone is often held in eval mode on purpose
            blocks = [
                name
                for name in trained
                if not isinstance(self.modules[name], _NormBase)
                and any(map(depends_on_mode, self.modules[name].modules()))
            ]
            what = (
                f"{_are(len(trained))} in {other} mode with parameters that are trained, "
                f"and the model is in {_mode(self.model)} mode"
            )
            sure = "likely" if blocks else "worth a look"
            findings.append(Finding(what, names(trained), sure, "5.1"))
        rest = [name for name, _ in self._tops() if name not in trained]
        notes = []
        if rest:
            notes.append(
                f"In {other} mode, without parameters that are trained: {names(rest)}."
            )
            thawed = [
                name
                for name, module in self._norms()
                if not module.training and self._frozen(name, module)
            ]
            if self.model.training and thawed and not self._sets_modes_itself():
                notes.append(
                    "The next `model.train()` puts frozen normalisation back in train "
                    f"mode, and its statistics move again: {names(thawed)}."
                )
        return findings, notes

    def judge_frozen(self) -> Finding | None:
        """Return the finding about frozen normalisation whose statistics move."""
        live = [
            name
            for name, module in self._norms()
            if module.training
            # with a momentum of 0 they stay what they are
            and module.momentum != 0
            and self._frozen(name, module)
        ]
        if not live:
            return None
        what = (
            f"the parameters are frozen and the running statistics are not: {len(live)} "
            f"normalisation module{'s' * (len(live) != 1)} in train mode"
        )
        return Finding(what, names(n or "the model" for n in live), "certain", "5.1")

    def own_kind(self) -> dict[str, nn.Module]:
        """Return frozen modules in train mode with buffers, of kinds not torch's own."""
        return {
            name: module
            for name, module in self.modules.items()
            if module.training
            and not type(module).__module__.startswith("torch.")
            and any(buffer.is_floating_point() for buffer in module.buffers(False))
            and self._frozen(name, module)
        }

    def _tops(self) -> Iterator[tuple[str, nn.Module]]:
        """Yield the differing modules that aren't inside another one."""
        for name, module in self.differing.items():
            owner = name.rpartition(".")[0]
            if owner not in self.differing:
                yield name, module

    def _norms(self) -> Iterator[tuple[str, Any]]:
        for name, module in self.modules.items():
            if isinstance(module, _NormBase) and module.running_mean is not None:
                yield name, module

    def _frozen(self, name: str, module: nn.Module) -> bool:
        """Return whether the nearest parameters, its own or around it, are frozen."""
        while True:
            flags = [parameter.requires_grad for parameter in module.parameters()]
            if flags or not name:
                return bool(flags) and not any(flags)
            name = name.rpartition(".")[0]
            module = self.modules[name]

    def _sets_modes_itself(self) -> bool:
        return any(type(m).train is not nn.Module.train for m in self.modules.values())


def _are(count: int) -> str:
    return "a module is" if count == 1 else f"{count:,} modules are"


def _mode(module: nn.Module) -> str:
    return "train" if module.training else "eval"
