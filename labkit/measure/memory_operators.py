"""What each of torch's operators does to memory, told from its schema."""

from typing import Any

import torch

# in the order in which the counter asks
VIEW, MAKE, CHANGE, CHANGE_MANY, DETACH, LIFT, REPLACE, UNSURE, COMPOSITE = range(9)

# what the engine calls to put a gradient in place, or to add to the one there
ACCUMULATES = {"detach", "clone", "new_empty_strided", "add", "add_"}

_HIDDEN_VIEWS = {"_unsafe_view", "unsafe_split", "unsafe_split_with_sizes"}
_REPLACES = {"resize_", "resize_as_", "resize_as_sparse_", "sparse_resize_", "set_"}


def name(func: Any) -> str:
    schema = getattr(func, "_schema", None)
    return schema.name.removeprefix("aten::") if schema is not None else ""


def effect(func: Any) -> int:
    """Return what an operator does to memory.

    VIEW: nothing. MAKE: makes tensors. CHANGE, CHANGE_MANY: changes its first argument,
    or several. DETACH: a view that may become a gradient. LIFT: hands over a tensor
    that was made out of sight, as torch.tensor's. REPLACE: gives a tensor another size
    or storage. UNSURE: anything. COMPOSITE: calls other operators.
    """
    called, schema = name(func), getattr(func, "_schema", None)
    if called.startswith("profiler::"):
        return VIEW
    if schema is None or "::" in called:
        return UNSURE  # not one of torch's own: it may return what it was given
    if called == "detach":
        return DETACH
    if called == "lift_fresh":
        return LIFT
    if called in _HIDDEN_VIEWS:
        return VIEW
    results = [result for result in schema.returns if "Tensor" in str(result.type)]
    if not results and not schema.is_mutable:
        return VIEW
    # seen only under inference_mode; elsewhere autograd takes these apart before
    if func._can_decompose() and not any(
        torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), backend)
        for backend in ("CPU", "CUDA", "CompositeExplicitAutograd")
    ):
        return COMPOSITE
    if called in _REPLACES or "out" in schema.overload_name:
        return REPLACE
    if any(result.alias_info is None for result in results):
        return MAKE
    if not schema.is_mutable:
        return VIEW
    return CHANGE if str(schema.arguments[0].type) == "Tensor" else CHANGE_MANY
