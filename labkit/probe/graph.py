"""Autograd's graph, walked from its roots: its leaves, and where a NaN begins."""

from collections.abc import Iterable, Iterator
from typing import Any

import torch


def nodes(roots: Iterable[torch.Tensor]) -> Iterator[Any]:
    """Yield every node of the graph behind `roots`, each once, roots first."""
    waiting = [root.grad_fn for root in roots if root.grad_fn is not None]
    seen = set(waiting)
    while waiting:
        node = waiting.pop()
        yield node
        for following, _ in node.next_functions:
            if following is not None and following not in seen:
                seen.add(following)
                waiting.append(following)


def leaves(roots: Iterable[torch.Tensor]) -> dict[int, torch.Tensor]:
    """Return the leaves that a backward from `roots` reaches, by `id`.

    Example:
        >>> w = torch.ones(2, requires_grad=True)
        >>> list(leaves([(w * 2).sum()]).values())
        [tensor([1., 1.], requires_grad=True)]
    """
    roots = list(roots)
    found = {id(root): root for root in roots if root.is_leaf and root.requires_grad}
    for node in nodes(roots):
        leaf = getattr(node, "variable", None)  # only AccumulateGrad has one
        if isinstance(leaf, torch.Tensor):
            found[id(leaf)] = leaf
    return found


class FirstNonFinite:
    """Finds the first node of a backward that makes NaN or Inf out of finite gradients.

    Attributes:
        node: that node, or None.
    """

    def __init__(self) -> None:
        self.node: Any = None
        self.kind = ""
        self._handles: list[Any] = []

    def watch(self, roots: Iterable[torch.Tensor]) -> None:
        """Put a hook on every node behind `roots`."""
        for node in nodes(roots):
            hook = self._hook(node)
            self._handles.append(node.register_hook(hook))

    def _hook(self, node: Any) -> Any:
        def look(results: tuple[Any, ...], incoming: tuple[Any, ...]) -> None:
            if self.node is not None or not _finite(incoming) or _finite(results):
                return
            self.node = node
            nan = any(_has_nan(result) for result in results)
            self.kind = "NaN" if nan else "Inf"

        return look

    def close(self) -> None:
        """Take the hooks away."""
        for handle in self._handles:
            handle.remove()
        self._handles.clear()


def operator(node: Any) -> str:
    """Return a node's operator: "sqrt" for SqrtBackward0."""
    name = node.name().split("::")[-1]
    return name.rstrip("0123456789").removesuffix("Backward").lower() or name


def values(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor's values without its graph; a sparse one's are summed up first."""
    tensor = tensor.detach()
    if tensor.layout == torch.strided:
        return tensor
    if tensor.layout == torch.sparse_coo:
        return tensor.coalesce().values()
    return tensor.values()


def _finite(tensors: Iterable[Any]) -> bool:
    return all(
        bool(torch.isfinite(values(tensor)).all())
        for tensor in tensors
        if isinstance(tensor, torch.Tensor)
    )


def _has_nan(tensor: Any) -> bool:
    return isinstance(tensor, torch.Tensor) and bool(values(tensor).isnan().any())
