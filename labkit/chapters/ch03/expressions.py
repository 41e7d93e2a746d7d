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

from labkit.chapters.ch03.pieces import (
    FUNCTIONS,
    METHODS,
    OPERATORS,
    WORDS,
    Refused,
    like,
    shown,
    small,
)

LONGEST = 160  # characters of an expression


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
        raise Refused(
            f"“.{node.attr}” is not known here: .T is, and .name() of a method"
        )

    def of_Call(self, node: ast.Call) -> Any:
        args = [self.of(arg) for arg in node.args]
        words = {str(word.arg): self.of(word.value) for word in node.keywords}
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
        if function in OPERATORS.values() and any(isinstance(a, tuple) for a in args):
            raise Refused(f"“{shown(node)}” calculates with a list")
        if all(isinstance(arg, int | float) for arg in args):
            # of whole numbers, powers can be endless
            args = tuple(map(float, args)) if function is operator.pow else args
        try:
            if not isinstance(function, torch.nn.Module):  # a model is small
                small(function(*like(args), **words))
            return function(*args, **words)
        except Refused:
            raise
        except (
            ArithmeticError,
            IndexError,
            RuntimeError,
            TypeError,
            ValueError,
        ) as error:
            line = (str(error).strip() or type(error).__name__).splitlines()[0]
            cut = line if len(line) <= 150 else f"{line[:149]}…"
            raise Refused(f"“{shown(node)}” fails: {cut}") from None
