"""Gradients as they arrive at a model's parameters, and what is done to them there."""

import functools
from contextlib import ExitStack
from typing import Any

import torch

from labkit.probe.place import within
from labkit.probe.tracks import Track, is_zero


class Arrivals:
    """Follows the gradients of parameters from backward to step.

    Attributes:
        tracks: one for each parameter, by its `id`.
        clock: counts the steps of all optimizers.
        scaled: whether what arrives now carries a GradScaler's scale.
        graph_kept: whether a gradient has a graph of its own (create_graph=True).
    """

    def __init__(self, tracks: dict[int, Track]) -> None:
        self.tracks = tracks
        self.clock = 0
        self.scaled = self.graph_kept = False
        self._by_address: dict[int, Track] = {}

    def watch(self, undo: ExitStack) -> None:
        """Put hooks on the parameters, until `undo` closes."""
        for track in self.tracks.values():
            parameter = track.parameter
            if parameter.requires_grad:
                before = functools.partial(self._before, track)
                after = functools.partial(self._after, track)
                undo.callback(parameter.register_hook(before).remove)
                handle = parameter.register_post_accumulate_grad_hook(after)
                undo.callback(handle.remove)

    def on_gradient(self, kind: str, name: str, args: list[Any]) -> None:
        """A function that resets, limits or measures was called.

        Args:
            kind: "zero", "clamp" or "norm".
            name: the function's name.
            args: its arguments; those that are no gradients are passed over.
        """
        tracks = [track for arg in args if (track := self._of_gradient(arg))]
        if kind == "zero":
            for track in tracks:
                track.zeroed = True
            return
        scaled = [track for track in tracks if track.scaled]
        if scaled and within("clip_grad.py"):
            kind = "clip"
        for track in scaled:
            track.limit(kind, in_place=name.endswith("_"))

    def _before(self, track: Track, _: torch.Tensor) -> None:
        grad = track.parameter.grad
        # only after a step it matters whether zeros were put there
        if grad is None or (track.last < self.clock and is_zero(grad)):
            track.born = self.clock
        track.last = self.clock

    def _after(self, track: Track, parameter: torch.Tensor) -> None:
        track.received += 1
        track.pending = track.unread = True
        track.scaled |= self.scaled
        track.mark()
        if parameter.grad is not None:
            self._by_address[_address(parameter.grad)] = track
            self.graph_kept |= parameter.grad.requires_grad

    def _of_gradient(self, arg: Any) -> Track | None:
        if not isinstance(arg, torch.Tensor) or arg.layout != torch.strided:
            return None
        # by address: `p.grad.data` is another object
        track = self._by_address.get(arg.data_ptr())
        grad = None if track is None else track.parameter.grad
        same = grad is not None and _address(grad) == arg.data_ptr()
        return track if same else None


def _address(tensor: torch.Tensor) -> int:
    return tensor.data_ptr() if tensor.layout == torch.strided else 0
