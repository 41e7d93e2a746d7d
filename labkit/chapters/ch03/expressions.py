"""Expressions that a learner types, computed on real tensors and on nothing else.

The text is never handed to Python: it is parsed, and each piece is carried out here, if
it is one of the few that are known.  So no text can reach a file, a loop or a name that
is not listed.
"""

import ast
import operator
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.nn import functional as F

LONGEST = 160  # characters of an expression
LARGEST = 1_000_000  # elements of a result, so that no picture takes seconds or gigabytes
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
METHODS = {*BOTH, "item", "view", "t"}
WORDS = {"dim", "keepdim", "min", "max", "p", "ord"}  # keyword arguments


class Refused(Exception):
    """A reason, in one sentence, why an expression has no picture."""


def evaluate(text: str, names: Mapping[str, Any], cutting: bool = True) -> Any:
    """The value of the expression `text`, a tensor or a number.

    `names` are the tensors and functions it may use beside FUNCTIONS.  Without `cutting`,
    detach() and item() leave the graph whole: what would be, if nobody had cut.  Raises
    Refused, with a sentence, for anything that is not a known piece, does not fit, or
    would be larger than LARGEST elements.

    >>> evaluate("(x * 2).sum()", {"x": torch.ones(3)})
    tensor(6.)
    """
    if len(text) > LONGEST:
        raise Refused(f"{len(text)} characters came, and {LONGEST} are accepted")
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise Refused("this is no expression that Python can read") from None
    value = Evaluation(names, cutting).of(tree.body)
    if isinstance(value, bool) or not isinstance(value, torch.Tensor | int | float):
        raise Refused(
            f"a tensor or a number is needed, and a {type(value).__name__} came"
        )
    return value


class Evaluation:
    """One pass over a parsed expression."""

    def __init__(self, names: Mapping[str, Any], cutting: bool) -> None:
        self.names = names
        self.cutting = cutting

    def of(self, node: ast.AST) -> Any:
        """The value of one piece; Refused where the piece is not known."""
        piece = getattr(self, f"of_{type(node).__name__}", None)
        if piece is None:
            raise Refused(f"“{shown(node)}” is not among what can be drawn here")
        return piece(node)

    def of_Constant(self, node: ast.Constant) -> Any:
        value = node.value
        if value is None or value is Ellipsis or isinstance(value, bool):
            return value
        if not isinstance(value, int | float):
            raise Refused(f"numbers are accepted, and {shown(node)} came")
        if abs(value) > 1e6:
            raise Refused("numbers up to a million are accepted")
        return value

    def of_Name(self, node: ast.Name) -> Any:
        if node.id in self.names:
            return self.names[node.id]
        if node.id in FUNCTIONS:
            return FUNCTIONS[node.id]
        known = ", ".join(self.names)
        raise Refused(
            f"the name “{shown(node)}” is not known here: there are {known} and functions "
            "of torch"
        )

    def of_Tuple(self, node: ast.Tuple | ast.List) -> Any:
        return tuple(map(self.of, node.elts))

    of_List = of_Tuple

    def of_Slice(self, node: ast.Slice) -> Any:
        ends = (node.lower, node.upper, node.step)
        return slice(*(None if end is None else self.of(end) for end in ends))

    def of_Subscript(self, node: ast.Subscript) -> Any:
        value, index = self.of(node.value), self.of(node.slice)
        return self.run(node, operator.getitem, value, index)

    def of_UnaryOp(self, node: ast.UnaryOp) -> Any:
        return self.run(node, self.operator(node, node.op), self.of(node.operand))

    def of_BinOp(self, node: ast.BinOp) -> Any:
        left, right = self.of(node.left), self.of(node.right)
        return self.run(node, self.operator(node, node.op), left, right)

    def of_Compare(self, node: ast.Compare) -> Any:
        if len(node.ops) != 1:
            raise Refused("one comparison at a time is accepted")
        left, right = self.of(node.left), self.of(node.comparators[0])
        return self.run(node, self.operator(node, node.ops[0]), left, right)

    def of_Attribute(self, node: ast.Attribute) -> Any:
        value = self.of(node.value)
        if isinstance(value, torch.Tensor) and node.attr in ("T", "mT"):
            return self.run(node, lambda tensor: getattr(tensor, node.attr), value)
        raise Refused(f"“.{node.attr}” is not known here: .T is, and .name() of a method")

    def of_Call(self, node: ast.Call) -> Any:
        args = [self.of(arg) for arg in node.args]
        words = {word.arg: self.of(word.value) for word in node.keywords}
        odd = [word for word in words if word not in WORDS]
        if odd:
            raise Refused(
                f"of keyword arguments {', '.join(sorted(WORDS))} are accepted, and "
                f"“{odd[0]}” came"
            )
        if isinstance(node.func, ast.Attribute):
            owner = self.owner(node.func)
            return self.method(node, owner, node.func.attr, args, words)
        function = self.of(node.func)
        if not callable(function):
            raise Refused(f"“{shown(node.func)}” is no function")
        if function is torch.detach:
            return self.method(node, args[0] if args else None, "detach", [], {})
        return self.run(node, function, *args, **words)

    def owner(self, node: ast.Attribute) -> Any:
        """What a method is called on; `torch.` and `F.` stand for nothing."""
        if isinstance(node.value, ast.Name) and node.value.id in ("torch", "F"):
            return None
        return self.of(node.value)

    def method(
        self, node: ast.Call, owner: Any, name: str, args: list[Any], words: Any
    ) -> Any:
        if owner is None and name in FUNCTIONS and name != "detach":
            return self.run(node, FUNCTIONS[name], *args, **words)
        if owner is None and name == "detach" and args:
            owner, args = args[0], args[1:]
        if not isinstance(owner, torch.Tensor) or name not in METHODS:
            raise Refused(f"“.{name}()” is not among the methods that are known here")
        if name == "item" and owner.numel() != 1:
            raise Refused(
                f"item() needs a tensor of one element, and this one has {owner.numel()}"
            )
        if not self.cutting and name in ("detach", "item"):
            return owner if name == "detach" or owner.dim() == 0 else owner.reshape(())
        if name == "item":
            return owner.item()
        return self.run(node, getattr(torch.Tensor, name), owner, *args, **words)

    def operator(self, node: ast.AST, kind: ast.AST) -> Callable[..., Any]:
        if type(kind) not in OPERATORS:
            raise Refused(f"the operator in “{shown(node)}” is not known here")
        return OPERATORS[type(kind)]

    def run(
        self, node: ast.AST, function: Callable[..., Any], *args: Any, **words: Any
    ) -> Any:
        """Carry it out, once it is known to fit and to be small enough."""
        if all(isinstance(arg, int | float) for arg in args):
            # of whole numbers, powers can be endless
            args = tuple(map(float, args)) if function is operator.pow else args
        try:
            if not isinstance(function, torch.nn.Module) and function not in (
                self.names.values()
            ):
                small(function(*like(args), **words))
            return function(*args, **words)
        except Refused:
            raise
        except (ArithmeticError, IndexError, RuntimeError, TypeError, ValueError) as error:
            line = (str(error).strip() or type(error).__name__).splitlines()[0]
            cut = line if len(line) <= 150 else f"{line[:149]}…"
            raise Refused(f"“{shown(node)}” fails, torch says: {cut}") from None


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
