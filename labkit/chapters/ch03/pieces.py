"""The few pieces that an expression on a page may be made of."""

import ast
import operator
from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional as F

LARGEST = (
    1_000_000  # elements of a result, so that no picture takes seconds or gigabytes
)
OPERATORS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
    ast.MatMult: operator.matmul,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
BOTH = (  # as torch.name(x) and as x.name()
    "abs add amax amin argmax clamp clone cos cumsum detach div erf exp flatten "
    "layer_norm log logsumexp matmul max maximum mean min minimum mul neg norm permute "
    "pow prod relu reshape round sigmoid sign sin softmax log_softmax sqrt square "
    "squeeze std sub sum tanh transpose unsqueeze var where"
).split()
FUNCTIONS: dict[str, Callable[..., Any]] = {
    name: getattr(torch, name) for name in BOTH if hasattr(torch, name)
} | {
    "layer_norm": F.layer_norm,
    "cat": torch.cat,
    "stack": torch.stack,
    "gelu": F.gelu,
    "softplus": F.softplus,
    "leaky_relu": F.leaky_relu,
    "zeros_like": torch.zeros_like,
    "ones_like": torch.ones_like,
}
METHODS = {name for name in (*BOTH, "item", "view", "t") if hasattr(torch.Tensor, name)}
WORDS = {"dim", "keepdim", "min", "max", "p", "ord"}  # keyword arguments


class Refused(Exception):
    """A reason, in one sentence, why an expression has no picture."""


def like(args: Any) -> Any:
    """The arguments with every tensor as one of the same shape that takes no memory."""
    if isinstance(args, torch.Tensor):
        return args.detach().to("meta")
    return tuple(map(like, args)) if isinstance(args, tuple) else args


def small(value: Any) -> None:
    """Refused where the value has too many elements to be computed for a picture."""
    for part in value if isinstance(value, tuple) else (value,):
        if isinstance(part, torch.Tensor) and part.numel() > LARGEST:
            raise Refused(
                f"a result of {part.numel():,} elements is more than this picture computes"
            )


def shown(node: ast.AST) -> str:
    """The piece of text that a node stands for, at most 40 characters."""
    text = ast.unparse(node)
    return text if len(text) <= 40 else f"{text[:39]}…"
