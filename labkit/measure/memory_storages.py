"""Where a tensor's numbers lie: its storages."""

from collections.abc import Iterator
from typing import Any

import torch
from torch.nn.parameter import Parameter, is_lazy

PLAIN = (torch.Tensor, Parameter)
"""Types whose dense tensors have one storage, and no others in them."""


def tensors(value: Any) -> Iterator[torch.Tensor]:
    """Yield the tensors in a value: itself, or those in lists, tuples and dicts."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, list | tuple):
        for part in value:
            yield from tensors(part)
    elif isinstance(value, dict):
        for part in value.values():
            yield from tensors(part)


def storages(value: Any) -> Iterator[torch.UntypedStorage]:
    """Yield the storages that hold the numbers of the tensors in a value.

    A sparse tensor has those of its indices and values, a wrapper those of the tensors
    in it. Meta and fake tensors have no memory, the opaque MKL-DNN layout shows none.
    """
    for tensor in tensors(value):
        if is_plain(tensor):
            yield tensor.untyped_storage()
        elif not is_lazy(tensor):
            yield from _of_special(tensor)


def is_plain(value: Any) -> bool:
    """Whether a value is a dense tensor, of no other subclass, with real memory."""
    return type(value) in PLAIN and value.layout is torch.strided and not value.is_meta


def _of_special(tensor: torch.Tensor) -> Iterator[torch.UntypedStorage]:
    if hasattr(tensor, "__tensor_flatten__"):
        names, _ = tensor.__tensor_flatten__()
        yield from storages([getattr(tensor, name) for name in names])
    elif tensor.layout is torch.sparse_coo:
        yield from storages([tensor._indices(), tensor._values()])
    elif tensor.layout in (torch.sparse_csr, torch.sparse_bsr):
        rows, columns = tensor.crow_indices(), tensor.col_indices()
        yield from storages([rows, columns, tensor.values()])
    elif tensor.layout in (torch.sparse_csc, torch.sparse_bsc):
        columns, rows = tensor.ccol_indices(), tensor.row_indices()
        yield from storages([columns, rows, tensor.values()])
    elif tensor.layout is torch.strided:
        storage = tensor.untyped_storage()
        on_meta = storage.device.type == "meta"
        # a wrapper without __tensor_flatten__ has a size, but nothing behind it
        if not on_meta and (storage.data_ptr() or not storage.nbytes()):
            yield storage
