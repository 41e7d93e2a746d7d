"""The autograd graph of a real tensor: its nodes, what each keeps, and what was cut off.

What a node keeps is read from its `_saved_...` attributes (see "Saved tensors" in
https://docs.pytorch.org/docs/stable/notes/autograd.html).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

MOST = 2000  # nodes that are walked


@dataclass(frozen=True)
class Saved:
    """One tensor that a node keeps: its name there, its bytes, and whose memory it is.

    `owner` is the name of the leaf whose memory this is, or "" for memory of its own.
    """

    name: str
    bytes: int
    owner: str


@dataclass(frozen=True)
class Node:
    """One node: an operation, or a leaf where a gradient is added up.

    `leaf` is the leaf's name, `shape` its shape; `reached` says whether the graph that
    was recorded contains the node, or only the graph without the cut.
    """

    key: int
    title: str
    saved: tuple[Saved, ...] = ()
    leaf: str = ""
    shape: tuple[int, ...] = ()
    reached: bool = True


@dataclass(frozen=True)
class Edge:
    """From a node to one it hands gradients on to; `kind` is "kept", "cut" or "lost".

    Cut is where the recorded graph ends and the other goes on; lost is what lies behind.
    """

    start: int
    end: int
    kind: str = "kept"


@dataclass
class Graph:
    """Nodes by key, the root's first, and edges in the order of the operations' inputs."""

    nodes: dict[int, Node] = field(default_factory=dict)
    edges: list[Edge] = field(default_factory=list)
    kept_bytes: int = 0
    whole: bool = True  # False: more than MOST nodes, of which the first are here

    @property
    def reached(self) -> list[Node]:
        return [node for node in self.nodes.values() if node.reached]

    @property
    def cuts(self) -> int:
        return sum(edge.kind == "cut" for edge in self.edges)


class Walk:
    """Goes through a recorded graph and, in step with it, the graph without cuts."""

    def __init__(self, leaves: Mapping[str, torch.Tensor]) -> None:
        self.graph = Graph()
        self.names = {id(tensor): name for name, tensor in leaves.items()}
        self.owners = {address(tensor): name for name, tensor in leaves.items()}
        self.kept: set[int] = set()
        self.alive: list[Any] = []  # a node's id is its own as long as it is held
        self.behind: list[tuple[int, Any]] = []  # what the whole graph has at a cut
        self.twins: dict[int, int] = {}  # a node of the whole graph → its recorded twin

    def recorded(self, recorded: Any, whole: Any) -> Graph:
        """Take up all that is reached from `recorded`; note where `whole` goes on."""
        todo = [(recorded, whole)]
        self.take(recorded, True)
        while todo:
            node, twin = todo.pop()
            following: tuple[Any, ...] = ()
            if alike(node, twin):
                self.alive.append(twin)
                self.twins[id(twin)] = self.key_of(node)
                following = twin.next_functions
            for n, (child, _) in enumerate(node.next_functions):
                other = following[n][0] if n < len(following) else None
                if child is not None:
                    if self.step(node, child, "kept", True):
                        todo.append((child, other))
                elif other is not None:
                    self.behind.append((self.key_of(node), other))
        return self.graph

    def lost(self) -> None:
        """Take up what lies behind the cuts, as not reached."""
        for start, first in self.behind:
            self.follow(first)
            self.graph.edges.append(Edge(start, self.key_of(first), "cut"))

    def follow(self, first: Any) -> None:
        """Take up what is reached from a node that the recorded graph lacks."""
        todo = [first] if self.take(first, False) else []
        while todo:
            node = todo.pop()
            for child, _ in node.next_functions:
                if child is not None and self.step(node, child, "lost", False):
                    todo.append(child)

    def step(self, node: Any, child: Any, kind: str, reached: bool) -> bool:
        """Add the edge, and the child where it is new; say whether it is."""
        if len(self.graph.nodes) >= MOST:
            self.graph.whole = False
            return False
        new = self.take(child, reached)
        self.graph.edges.append(Edge(self.key_of(node), self.key_of(child), kind))
        return new

    def take(self, node: Any, reached: bool) -> bool:
        key = self.key_of(node)
        if key in self.graph.nodes:
            return False
        self.alive.append(node)
        self.graph.nodes[key] = self.describe(node, key, reached)
        return True

    def key_of(self, node: Any) -> int:
        """One key for a node and its twin, and for a leaf in both graphs."""
        variable = getattr(node, "variable", None)
        own = id(node) if variable is None else id(variable)
        return self.twins.get(own, own)

    def describe(self, node: Any, key: int, reached: bool) -> Node:
        variable = getattr(node, "variable", None)
        if variable is not None:
            name = self.names.get(id(variable), "a leaf")
            shape = tuple(variable.shape)
            return Node(key, "AccumulateGrad", (), name, shape, reached)
        title = node.name().rpartition("::")[2]
        kept = tuple(self.saved(node)) if reached else ()
        return Node(key, title, kept, reached=reached)

    def saved(self, node: Any) -> list[Saved]:
        """The tensors among a node's `_saved_...` attributes."""
        found = []
        for attribute in dir(node):
            if not attribute.startswith("_saved_"):
                continue
            value = getattr(node, attribute)
            name = attribute.removeprefix("_saved_")
            tensors = value if isinstance(value, tuple | list) else [value]
            for tensor in tensors:
                if isinstance(tensor, torch.Tensor):
                    found.append(self.one(name, tensor))
        return found

    def one(self, name: str, tensor: torch.Tensor) -> Saved:
        place, size = address(tensor), tensor.untyped_storage().nbytes()
        owner = self.owners.get(place, "")
        if not owner and place not in self.kept:
            self.kept.add(place)
            self.alive.append(tensor)  # or its address may be given out again
            self.graph.kept_bytes += size
        return Saved(name, size, owner)


def graph_of(
    recorded: torch.Tensor, whole: torch.Tensor, leaves: Mapping[str, torch.Tensor]
) -> Graph:
    """The graph behind `recorded`, and beside it what `whole` has and it has not.

    Both are the same computation, `whole` without cuts; they may be the same tensor.
    `leaves` are the tensors whose names and memory are told apart.  Nothing is changed
    and no backward is run.
    """
    walk = Walk(leaves)
    if recorded.grad_fn is not None:
        walk.recorded(recorded.grad_fn, whole.grad_fn)
    elif whole.grad_fn is not None:
        walk.follow(whole.grad_fn)
    walk.lost()
    return walk.graph


def key_of(node: Any) -> int:
    """One key for a node, and for a leaf the same in both graphs."""
    variable = getattr(node, "variable", None)
    return id(node) if variable is None else id(variable)


def alike(node: Any, twin: Any) -> bool:
    """Are the two the same operation with the same number of inputs?"""
    return (
        twin is not None
        and node.name() == twin.name()
        and len(node.next_functions) == len(twin.next_functions)
    )


def address(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().data_ptr()
