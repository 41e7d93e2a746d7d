"""What happens to one parameter's gradient while a training step runs."""

from dataclasses import dataclass, field
from typing import Any

import torch

from labkit.probe.graph import values


@dataclass(eq=False)
class Track:
    """One parameter of the model, and what was seen of its gradient.

    The clock counts the steps of all optimizers: `born` is when the first of the
    contributions came that `.grad` holds, `last` when the last of them came.
    """

    name: str
    parameter: torch.Tensor
    received: int = 0  # contributions by backwards
    unread: bool = False  # received since it was last read
    pending: bool = False  # received since its own optimizer's last step
    born: int = 0
    last: int = -1
    state: str = "none"
    norm: float | None = None
    seen: set[str] = field(default_factory=set)  # all states that were read
    own: bool = False  # read where its own optimizer steps
    scaled: bool = False  # still carries a GradScaler's scale
    limited: str = ""  # "clip", "clamp" or "norm", while it was scaled
    written: bool = False  # limited in place
    grad: Any = None  # the gradient's id and version after its last contribution
    zeroed: bool = False  # reset since its last contribution
    emptied: bool = False  # it was reset between backward and its own step
    stale: bool = False  # stepped with what its own last step had used before
    mixed: bool = False  # stepped with what came before another optimizer's step
    clipped_scaled: str = ""
    stepped: bool = False

    def mark(self) -> None:
        """Note the gradient that a contribution has just gone into."""
        grad = self.parameter.grad
        self.grad = None if grad is None else (id(grad), _version(grad))
        self.zeroed = False

    def changed(self) -> bool:
        """Return whether the gradient was changed since its last contribution."""
        grad = self.parameter.grad
        return self.grad != (None if grad is None else (id(grad), _version(grad)))

    def read(self, own: bool) -> None:
        """Read the gradient: what kind it is, and its norm."""
        self.unread = False
        if self.own and not own:
            return
        self.own = own
        self.state, self.norm = measure(self.parameter.grad)
        self.seen.add(self.state)

    def reset_limits(self) -> None:
        """Note that the gradient carries no scale any more."""
        self.scaled = self.written = False
        self.limited = ""

    def limit(self, kind: str, in_place: bool) -> None:
        """Note that a scaled gradient was clipped, clamped or measured."""
        if self.limited != "clip":
            self.limited = kind
        self.written |= in_place

    def look_for_clipping(self) -> None:
        """Note whether the gradient was limited while it carried the scale."""
        if self.scaled and self.limited and (self.written or self.changed()):
            self.clipped_scaled = self.limited

    def judge(self, last_step: int) -> None:
        """Judge and read the gradient where its own optimizer steps.

        Args:
            last_step: the clock after that optimizer's step before, or 0.
        """
        if not self.pending:
            if not self.own:
                self.read(own=True)
            return
        self.emptied = self.parameter.grad is None or self.zeroed
        if not self.emptied and self.born < self.last:
            if self.born < last_step <= self.last:
                self.stale = True
            else:
                self.mixed = True
        self.read(own=True)
        self.pending = False


def measure(grad: torch.Tensor | None) -> tuple[str, float | None]:
    """Return "none", "zero", "finite" or "NaN or Inf" and the gradient's 2-norm.

    Example:
        >>> measure(torch.tensor([3.0, 4.0]))
        ('finite', 5.0)
    """
    if grad is None:
        return "none", None
    found = values(grad)
    if found.numel() == 0:
        return "zero", 0.0
    small = found.dtype in (torch.float16, torch.bfloat16)
    dtype = torch.float32 if small else None  # float16's norm ends at 65504
    norm = float(torch.linalg.vector_norm(found, dtype=dtype))
    if norm > 0 and norm < float("inf"):
        return "finite", norm
    if not bool(torch.isfinite(found).all()):
        return "NaN or Inf", norm
    if not bool(found.any()):
        return "zero", 0.0
    # squares that left the range of the type
    wide = torch.complex128 if found.is_complex() else torch.float64
    return "finite", float(torch.linalg.vector_norm(found, dtype=wide))


def is_zero(grad: torch.Tensor | None) -> bool:
    """Return whether there is no gradient, or none but zeros."""
    return grad is None or not bool(values(grad).any())


def _version(tensor: torch.Tensor) -> int:
    return -1 if tensor.is_inference() else tensor._version
