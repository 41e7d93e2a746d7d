"""Torch's functions, watched while a step runs: where chains are cut, what is used."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from labkit.probe.edits import Edits
from labkit.probe.function_names import CUTS, GRADIENT_KINDS, NUMBERS, REBUILDS
from labkit.probe.graph import leaves
from labkit.probe.place import Place, here

_WALKS = 3  # graphs walked for one line of code and run: a loop may cut often


@dataclass(frozen=True)
class Cut:
    """A call that took values out of the graph.

    Attributes:
        by: the function. place: the line. module: the module it ran in, or None.
        leaves: ids of the leaves whose chain it cut.
    """

    by: str
    place: Place | None
    module: Any
    leaves: frozenset[int]


class Functions(TorchFunctionMode):
    """Sees every call of a function of torch in this thread.

    Attributes:
        cuts: the calls that took values out of the graph.
        used: ids of parameters that a function took with grad mode on, and off.
        edits: what happens to the inputs of modules.
        on_gradient: called with "norm", "clamp" or "zero", and the name and the
            arguments of a function that may be doing that to gradients.
        quiet: whether to look away: in a backward, where checkpoints run their forward
            again, and in an optimizer's own work.
        tracing: whether to note which line made which node.
    """

    def __init__(self, parameters: dict[int, torch.Tensor]) -> None:
        super().__init__()
        self.parameters = parameters
        self.cuts: list[Cut] = []
        self.used: dict[bool, set[int]] = {True: set(), False: set()}
        self.edits = Edits()
        self.on_gradient: Callable[[str, str, list[Any]], None] | None = None
        self.quiet = self.tracing = False
        self.made: dict[Any, tuple[str, Place | None, Any]] = {}
        self.first_nan: tuple[str, Place | None] | None = None
        self._walked: dict[Place | None, int] = {}

    def start_run(self) -> None:
        """A new run of the step begins."""
        self.quiet = False
        self._walked.clear()
        self.made.clear()
        self.edits.running.clear()

    def __torch_function__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        if self.quiet:
            return result
        name = getattr(func, "__name__", "")
        if name == "__get__":
            if getattr(func, "__self__", None) is not torch.Tensor.data:
                return result
            name = "data"
        self._note(name, args, result)
        return result

    def _note(self, name: str, args: tuple[Any, ...], result: Any) -> None:
        grad = torch.is_grad_enabled()
        kind = GRADIENT_KINDS.get(name)
        if kind is not None and self.on_gradient is not None:
            self.on_gradient(kind, name, list(_flat(args)))
        if not grad and not self.edits.running:
            return  # an optimizer's own work, mostly
        for arg in _flat(args):
            if id(arg) in self.parameters:
                self.used[grad].add(id(arg))
        self.edits.called(name, args)
        if grad and name in CUTS:
            self._note_cut(name, args, result)
        if self.tracing:
            self._note_made(name, args, result)

    def _note_cut(self, name: str, args: tuple[Any, ...], result: Any) -> None:
        # a rebuilt tensor may ask for gradients of its own
        rebuilt = name in REBUILDS and getattr(result, "grad_fn", None) is None
        if getattr(result, "requires_grad", False) and not rebuilt:
            return
        sources = [
            arg
            for arg in _flat(args)
            if isinstance(arg, torch.Tensor) and arg.requires_grad
        ]
        if not sources:
            return
        place = here()
        self._walked[place] = self._walked.get(place, 0) + 1
        if self._walked[place] <= _WALKS:
            running = self.edits.running
            self.cuts.append(
                Cut(
                    by=name.strip("_"),
                    place=place,
                    module=running[-1] if running else None,
                    leaves=frozenset(leaves(sources)),
                )
            )

    def _note_made(self, name: str, args: tuple[Any, ...], result: Any) -> None:
        tensors = [part for part in _flat((result,)) if isinstance(part, torch.Tensor)]
        running = self.edits.running
        for tensor in tensors:
            if tensor.grad_fn is not None:
                note = (name, here(), running[-1] if running else None)
                self.made.setdefault(tensor.grad_fn, note)
        if self.first_nan is None and any(map(_nan, tensors)):
            made_here = not any(map(_nan, _flat(args)))
            self.first_nan = (name, here()) if made_here else None


def is_number(cut: Cut) -> bool:
    """Return whether the cut gave Python a number: a constant, for autograd."""
    return cut.by in NUMBERS


def _flat(values: tuple[Any, ...]) -> Iterator[Any]:
    for value in values:
        if isinstance(value, list | tuple):
            yield from value
        else:
            yield value


def _nan(value: Any) -> bool:
    if not isinstance(value, torch.Tensor) or value.layout != torch.strided:
        return False
    if not (value.is_floating_point() or value.is_complex()) or value.is_meta:
        return False
    return bool(value.detach().isnan().any())
