"""Whose memory a state's tensors use: the live tensors', or more than they need."""

from collections.abc import Iterable
from typing import Any

import torch

_WHOLE = 2**20  # bytes of a storage from which an unused rest is worth a word


def address(tensor: torch.Tensor) -> tuple[str, int] | None:
    """Return the device and address of the tensor's storage; None where it has none.

    Fake, sparse and meta tensors, and empty ones, have none.
    """
    if tensor.device.type == "meta":
        return None
    try:
        storage = tensor.untyped_storage()
        return (str(tensor.device), storage.data_ptr()) if storage.nbytes() else None
    except RuntimeError:  # torch's word for a tensor without a storage of its own
        return None


def shared(live: Iterable[torch.Tensor], state: dict[str, Any]) -> tuple[str, ...]:
    """Return the names in `state` whose tensors use the storage of a live tensor."""
    places = {address(tensor) for tensor in live} - {None}
    return tuple(
        name
        for name, value in state.items()
        if isinstance(value, torch.Tensor) and address(value) in places
    )


def unused_bytes(state: dict[str, Any]) -> tuple[int, tuple[str, ...]]:
    """Return the bytes of storages that no tensor of `state` uses, and its views.

    `torch.save` writes the whole storage of a view.  Small storages are left out, and
    those of which more than half is used.
    """
    used: dict[tuple[str, int], int] = {}
    whole: dict[tuple[str, int], int] = {}
    views: dict[tuple[str, int], list[str]] = {}
    for name, value in state.items():
        place = address(value) if isinstance(value, torch.Tensor) else None
        if place is not None:
            size = value.numel() * value.element_size()
            used[place] = used.get(place, 0) + size
            whole[place] = value.untyped_storage().nbytes()
            views.setdefault(place, []).append(name)
    wasting = [p for p in used if whole[p] >= _WHOLE and 2 * used[p] < whole[p]]
    found = tuple(name for place in wasting for name in views[place])
    return sum(whole[place] - used[place] for place in wasting), found
