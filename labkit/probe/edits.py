"""Inputs of modules that are edited in place, and read again afterwards."""

import weakref
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from labkit.probe.place import Place, here

# they write without reading what was there
_OVERWRITES = ("copy_", "zero_", "fill_", "normal_", "uniform_", "bernoulli_")
# they ask about a tensor and don't read its values
_ASKS = frozenset(
    [
        "__get__",
        "size",
        "dim",
        "stride",
        "numel",
        "element_size",
        "is_floating_point",
        "is_contiguous",
        "storage_offset",
        "is_complex",
        "data_ptr",
        "register_hook",
        "requires_grad_",
        "backward",
        "__len__",
        "ndimension",
        "untyped_storage",
        "get_device",
        "retain_grad",
    ]
)


@dataclass
class Edit:
    """An input that was edited in place, and what happened to it then.

    Attributes:
        module: the innermost module with children whose own input it was.
        by: the function that edited it; explicit: the learner's own call says so
            (`x.mul_`, `x +=`), not a flag like `inplace=True`.
        reads_inside: how often that module read it afterwards.
        after: whether it was read after that module had returned.
        reader, read_at: the function that read it again, and the line.
    """

    module: nn.Module
    by: str
    explicit: bool
    inside: nn.Module
    place: Place | None
    reads_inside: int = 0
    after: bool = False
    reader: str = ""
    read_at: Place | None = None


@dataclass
class _Input:
    """A tensor that modules with children were called with."""

    ref: "weakref.ref[torch.Tensor]"
    version: int
    owners: list[nn.Module] = field(default_factory=list)  # those that still run
    edit: Edit | None = None


class Edits:
    """Follows the tensors that modules with children are called with."""

    def __init__(self) -> None:
        self.found: list[Edit] = []
        self.running: list[nn.Module] = []
        self._inputs: dict[int, _Input] = {}

    def enter(self, module: nn.Module, inputs: tuple[Any, ...]) -> None:
        """A module is called."""
        self.running.append(module)
        if not module._modules:
            return
        for tensor in _tensors(inputs):
            if tensor.is_inference():
                continue  # it has no version
            entry = self._find(tensor)
            if entry is None:
                entry = _Input(weakref.ref(tensor), tensor._version)
                self._inputs[id(tensor)] = entry
            entry.owners.append(module)

    def leave(self, module: nn.Module, inputs: tuple[Any, ...], output: Any) -> None:
        """The module returns, also by an error."""
        while self.running and self.running.pop() is not module:
            pass
        if not module._modules:
            return
        returned = {id(tensor) for tensor in _tensors((output,))}
        for tensor in _tensors(inputs):
            entry = self._find(tensor)
            if entry is None or module not in entry.owners:
                continue
            entry.owners.remove(module)
            edit = entry.edit
            if edit is not None and edit.module is module and id(tensor) in returned:
                # its output is the edited input: reading it is what is meant
                if entry.owners:
                    edit.module = entry.owners[-1]
                else:
                    entry.edit = None
            if not entry.owners and entry.edit is None:
                del self._inputs[id(tensor)]

    def called(self, name: str, args: tuple[Any, ...]) -> None:
        """A function of torch was called and has returned."""
        if not self._inputs or name in _ASKS:
            return
        for tensor in _tensors(args):
            entry = self._find(tensor)
            if entry is not None:
                self._used(entry, tensor, name)

    def _used(self, entry: _Input, tensor: torch.Tensor, name: str) -> None:
        edited = tensor._version != entry.version
        entry.version = tensor._version
        edit = entry.edit
        if edit is not None and edit.module not in entry.owners:
            if not edit.after and name not in _OVERWRITES:
                edit.after, edit.reader, edit.read_at = True, name, here()
                self.found.append(edit)
        elif edited and entry.owners:
            entry.edit = Edit(
                module=entry.owners[-1],
                by=name,
                explicit=name.endswith("_"),
                inside=self.running[-1] if self.running else entry.owners[-1],
                place=here(),
            )
        elif edit is not None and not edited:
            edit.reads_inside += 1
            if edit.reads_inside == 2 and not edit.explicit:
                edit.reader, edit.read_at = name, here()
                self.found.append(edit)

    def _find(self, tensor: torch.Tensor) -> _Input | None:
        entry = self._inputs.get(id(tensor))
        # an id may have passed to another tensor
        return entry if entry is not None and entry.ref() is tensor else None


def _tensors(values: Any) -> list[torch.Tensor]:
    found = []
    for value in values:
        if isinstance(value, torch.Tensor):
            found.append(value)
        elif isinstance(value, list | tuple):
            found += [part for part in value if isinstance(part, torch.Tensor)]
    return found
