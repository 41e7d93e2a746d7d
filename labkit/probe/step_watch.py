"""A training step under watch: its backwards, optimizers, scaler and schedulers."""

import functools
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import nn
from torch.nn.modules.module import (
    register_module_forward_hook,
    register_module_forward_pre_hook,
)
from torch.optim import Optimizer
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)

from labkit.probe.arrivals import Arrivals
from labkit.probe.calls import replace, watch_calls
from labkit.probe.functions import Functions
from labkit.probe.graph import FirstNonFinite, leaves
from labkit.probe.known import Known
from labkit.probe.step_state import Keeper
from labkit.probe.tracks import Track


class StepWatch:
    """Runs a step under hooks, and collects what its gradients went through.

    Attributes:
        tracks: one for each parameter of the model, by `id`.
        optimizers: those that were given and those that stepped, by `id`.
        stepped: ids of those that stepped.
        strangers: leaves that received gradient and aren't the model's, by `id`.
        skipped: steps that a GradScaler left out.
        bad_loss: whether a loss was NaN or Inf.
        saw_forward: whether the forward ran under watch too.
        arrivals: the gradients between backward and step.
        scale_pending: whether a GradScaler has scaled what is differentiated next.
    """

    def __init__(self, known: Known, keeper: Keeper) -> None:
        self.known = known
        self.keeper = keeper
        self.tracks = {id(p): Track(n, p) for n, p in known.parameters.items()}
        self.functions = Functions({id(t.parameter): t.parameter for t in self._all()})
        self.arrivals = Arrivals(self.tracks)
        self.functions.on_gradient = self.arrivals.on_gradient
        self.tracer = FirstNonFinite()
        self.traced: StepWatch | None = None  # the runs that looked for the first NaN
        self.optimizers: dict[int, Optimizer] = {}
        self.stepped: set[int] = set()
        self.strangers: dict[int, torch.Tensor] = {}
        self.backwards = self.skipped = 0
        self.bad_loss = self.scale_pending = False
        self.saw_forward = True
        self._depth = 0
        self._last_step: dict[int, int] = {}  # the clock after an optimizer's last step

    def _all(self) -> Iterator[Track]:
        yield from self.tracks.values()

    def meet(self, optimizer: Optimizer) -> None:
        """Keep what an optimizer changes, and note that it takes part."""
        self.keeper.optimizer(optimizer)
        self.optimizers[id(optimizer)] = optimizer

    def owned(self, optimizer: Optimizer) -> list[Track]:
        """Return the model's parameters that an optimizer holds."""
        held = (p for group in optimizer.param_groups for p in group["params"])
        return [self.tracks[id(p)] for p in held if id(p) in self.tracks]

    def run(self, step: Callable[[], Any], trace: bool = False) -> None:
        """Run the step once; with `trace`, look for the first NaN or Inf."""
        self.functions.start_run()
        self.functions.tracing = trace
        with self._hooks():
            try:
                with self.functions:
                    step()
            finally:
                self.tracer.close()
        for track in self._all():
            if track.unread:
                track.read(own=False)

    def look_at_once(self) -> None:
        """Read the gradients as they are, without running anything."""
        self.saw_forward = False
        for track in self._all():
            track.read(own=False)
        for leaf in self.known.hidden.values():
            if leaf.grad is not None:
                self.strangers[id(leaf)] = leaf

    def not_finite(self) -> bool:
        """Return whether a gradient that was read last holds NaN or Inf."""
        return any(track.state == "NaN or Inf" for track in self._all())

    @contextmanager
    def _hooks(self) -> Iterator[None]:
        with ExitStack() as undo:
            if "torch._dynamo" in sys.modules:
                # compiled code would be compiled again, with this watch in it
                undo.enter_context(torch.compiler.set_stance("force_eager"))
            steps = register_optimizer_step_pre_hook(self._before_step)
            undo.callback(steps.remove)
            stepped = register_optimizer_step_post_hook(self._after_step)
            undo.callback(stepped.remove)
            entered = register_module_forward_pre_hook(self._before_module)
            undo.callback(entered.remove)
            left = register_module_forward_hook(self._after_module, always_call=True)
            undo.callback(left.remove)
            self.arrivals.watch(undo)
            replace(undo, torch.autograd, "backward", self._backward)
            watch_calls(undo, self)
            yield

    # modules: what a forward changes is kept before it runs

    def _before_module(self, module: nn.Module, inputs: Any) -> None:
        self.keeper.module(module)
        if not self.functions.quiet:
            self.functions.edits.enter(module, inputs)

    def _after_module(self, module: nn.Module, inputs: Any, output: Any) -> None:
        if not self.functions.quiet:
            self.functions.edits.leave(module, inputs, output)

    # backwards

    def _backward(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def backward(*args: Any, **kwargs: Any) -> Any:
            given = args[0] if args else kwargs.get("tensors", ())
            roots = [given] if isinstance(given, torch.Tensor) else list(given)
            found = leaves(roots)
            new = {key: leaf for key, leaf in found.items() if key not in self.tracks}
            for leaf in new.values():
                self.keeper.gradient(leaf)
            if self._depth == 0:
                self._begin(roots)
            self._depth += 1
            self.functions.quiet = True
            try:
                result = original(*args, **kwargs)
            finally:
                self._depth -= 1
                self.functions.quiet = self._depth > 0
            for key, leaf in new.items():
                if leaf.grad is not None:
                    self.strangers[key] = leaf
            return result

        return backward

    def _begin(self, roots: list[torch.Tensor]) -> None:
        self.backwards += 1
        if not all(bool(torch.isfinite(root.detach()).all()) for root in roots):
            self.bad_loss = True
        if self.functions.tracing:
            self.tracer.watch(roots)
        self.arrivals.scaled, self.scale_pending = self.scale_pending, False

    # optimizers

    def _before_step(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        self.meet(optimizer)
        self.judge(optimizer)
        for track in self._all():
            if track.unread and not track.own:
                track.read(own=False)
        # a closure would run the learner's forward
        self.functions.quiet |= len(args) < 2 and not kwargs.get("closure")

    def _after_step(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        self.functions.quiet = self._depth > 0
        self.judge(optimizer)  # a closure's backward ran in the step
        self.arrivals.clock += 1
        self.stepped.add(id(optimizer))
        self._last_step[id(optimizer)] = self.arrivals.clock
        for track in self.owned(optimizer):
            track.reset_limits()
            track.stepped = True

    def judge(self, optimizer: Optimizer) -> None:
        """Judge the gradients that an optimizer steps with, or would have."""
        for track in self.owned(optimizer):
            track.judge(self._last_step.get(id(optimizer), 0))
