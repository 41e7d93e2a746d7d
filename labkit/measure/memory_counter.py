"""The dispatch mode that sees storages being made, and tells what they are for."""

import weakref
from collections.abc import Iterable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from labkit.measure.memory_autograd import (
    NODES_ARE_READ,
    AccumulateGrad,
    current_node,
    in_function,
    saved_by,
    top_hooks,
)
from labkit.measure.memory_ledger import Entry, Ledger
from labkit.measure.memory_operators import (
    ACCUMULATES,
    CHANGE,
    COMPOSITE,
    DETACH,
    LIFT,
    MAKE,
    REPLACE,
    effect,
    name,
)
from labkit.measure.memory_storages import is_plain, storages, tensors

_recording = torch.is_grad_enabled
_strided, _Tensor = torch.strided, torch.Tensor

# How copy.deepcopy and torch.load put a tensor around a storage of theirs, which came
# without an operator. Other forms of set_ are used on storages that exist for long.
_rebuilding = torch.ops.aten.set_.source_Storage_storage_offset


class Counter(TorchDispatchMode):
    """Counts in a ledger the storages that operators make.

    An activation is known in two ways. The node that a recorded call left behind says
    what it saved; it is read when the next operator is called. And a result of a
    recorded call that is still alive when the backward begins was kept for something.

    Args:
        ledger: where storages are counted; those of what was given are in it already.
    """

    supports_higher_order_operators = True

    def __init__(self, ledger: Ledger) -> None:
        super().__init__()
        self.made_in_step: list[Entry] | None = None
        self.allocator_peak = 0
        self._ledger, self._add = ledger, ledger.add
        self._known: dict[int, tuple[int, Any]] = {}
        self._operators: list[Any] = []
        self._accumulates: set[int] = set()
        # of the last call that was recorded
        self._result: weakref.ref[torch.Tensor] | None = None
        self._made: tuple[Entry, ...] = ()
        self._readable = self._in_forward = False
        self._undecided: list[Entry] = []
        self._prune_at = 1000

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # done below, without a wrapper

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        # this runs for every operator: what could be shorter is written for speed
        try:
            # by id, as hashing an operator runs Python code
            does, call = self._known[id(func)]
        except KeyError:
            does, call = self._learn(func)
        if not does:
            return call(*args, **kwargs) if kwargs else call(*args)
        if does == DETACH:
            out = call(*args)
            node = current_node()
            # a sparse gradient's indices and values are detached too, on their own
            if type(node) is AccumulateGrad and out.numel() == node.variable.numel():
                self._ledger.name(out, "gradient")
            return out
        if does >= LIFT or (does == CHANGE and args[0].layout is not _strided):
            return self._look_at(does, func, args, kwargs or {})
        node, recording = current_node(), _recording()
        if node is not None or recording:
            if self._result is not None:
                self._settle()
            if self._undecided and node is not None:
                self._decide(recording)
        out = call(*args, **kwargs) if kwargs else call(*args)
        made: tuple[Entry, ...] = ()
        if does == MAKE:
            if type(out) is _Tensor and out.layout is _strided and not out.is_meta:
                made = (self._add(out.untyped_storage()),)
            elif isinstance(out, tuple | list) and all(map(is_plain, out)):
                made = tuple([self._add(part.untyped_storage()) for part in out])
            else:
                made = self._count_new(out, storages((args, kwargs)))
        if node is None:
            if recording:
                self._remember(out, made, True)
            elif made:
                self._unrecorded(made)
        elif recording or type(node) is AccumulateGrad:
            self._in_backward(func, out, made, node, recording)
        return out

    def _look_at(self, does: int, func: Any, args: Any, kwargs: Any) -> Any:
        """Call an operator that is rare or not simple, and count what it made."""
        if does == COMPOSITE:
            with self:
                return func.decompose(*args, **kwargs)
        node, recording = current_node(), _recording()
        if node is not None or recording:
            if self._result is not None:
                self._settle()
            if self._undecided and node is not None:
                self._decide(recording)
        # kept while it runs: what is replaced is freed once the new is there
        before = list(storages((args, kwargs)))
        if does == REPLACE and func is not _rebuilding:
            before += [arg for arg in args if isinstance(arg, torch.UntypedStorage)]
        out = func(*args, **kwargs)
        made: tuple[Entry, ...] = ()
        if does != LIFT:
            made = self._count_new(out, before)
        elif out.layout is not _strided or out.untyped_storage().resizable():
            # memory from elsewhere, such as NumPy's, can't be resized
            made = self._count_new(out, ())
        if node is not None:
            self._in_backward(func, out, made, node, recording)
        elif recording:
            self._remember(out, made, True)
        else:
            self._unrecorded(made)
        return out

    def _in_backward(
        self, func: Any, out: Any, made: tuple[Entry, ...], node: Any, recording: bool
    ) -> None:
        if type(node) is not AccumulateGrad:
            if recording:
                self._remember(out, made, False)
        # the engine puts a gradient in place, or has added to it
        elif id(func) in self._accumulates and out.numel() == node.variable.numel():
            self._ledger.name(out, "gradient")

    def _unrecorded(self, made: tuple[Entry, ...]) -> None:
        self._ledger.fold_if_long()
        if self.made_in_step is not None:
            self.made_in_step += made
        elif in_function():
            self._undecided += made

    def _learn(self, func: Any) -> tuple[int, Any]:
        # without the Python method that only passes the call on to _op
        known = self._known[id(func)] = effect(func), getattr(func, "_op", func)
        self._operators.append(func)  # kept, so that its id stays its own
        if name(func) in ACCUMULATES:
            self._accumulates.add(id(func))
        return known

    def _count_new(
        self, out: Any, passed: Iterable[torch.UntypedStorage]
    ) -> tuple[Entry, ...]:
        """Count the storages of a result that were not among those passed in."""
        made = []
        known = {id(storage) for storage in passed}
        for storage in storages(out):
            entry = self._ledger.find(storage)
            if entry is not None:
                made.append(self._ledger.resize(entry, storage))
            elif id(storage) not in known and not _is_mapped(storage):
                made.append(self._add(storage))
        return tuple(made)

    def _remember(self, out: Any, made: tuple[Entry, ...], in_forward: bool) -> None:
        """Note a call that autograd may have recorded: its node comes only later."""
        result = out if type(out) is _Tensor else next(tensors(out), None)
        if result is None:
            return
        self._result, self._made = weakref.ref(result), made
        self._readable = NODES_ARE_READ and top_hooks(True) is None
        # recorded in the backward, under a hook: checkpoint computes a layer again
        self._in_forward = in_forward or not self._readable

    def _settle(self) -> None:
        """Look at what autograd did with the call that was noted last."""
        assert self._result is not None
        result, self._result = self._result(), None
        self._ledger.fold_if_long()
        node = None if result is None else result.grad_fn
        if node is None and result is not None:
            return
        if self._in_forward:
            self._undecided += self._made
            if len(self._undecided) > self._prune_at:
                self._undecided = [e for e in self._undecided if e() is not None]
                self._prune_at = max(1000, 2 * len(self._undecided))
        if self._readable and node is not None:
            for saved in saved_by(node):
                self._ledger.name(saved, "activation", unless_named=True)

    def _decide(self, recording: bool) -> None:
        """Take what a backward finds alive for activations."""
        if recording and not (NODES_ARE_READ and top_hooks(True) is None):
            return  # a layer is being computed again, and not all of it is there
        for entry in self._undecided:
            if entry.kind is None and entry() is not None:
                entry.kind = "activation"
        self._undecided.clear()

    def finish(self) -> None:
        """Look at the last recorded call, which no other followed."""
        if self._result is not None:
            self._settle()
        if not NODES_ARE_READ:
            self._decide(recording=False)
        self._undecided.clear()
        self._operators.clear()


# Should a compiled function call operators one by one, its compiler is kept from
# compiling the counter (which a wrapper around each call would do, for a tenth of a
# small step's time).
_frames: Any = torch._C._dynamo.eval_frame
if hasattr(_frames, "set_code_exec_strategy"):
    _skip = _frames._FrameAction.SKIP
    _frames.set_code_exec_strategy(
        Counter.__torch_dispatch__.__code__, _frames._FrameExecStrategy(_skip, _skip)
    )


def _is_mapped(storage: torch.UntypedStorage) -> bool:
    return bool(getattr(storage, "filename", None))
