"""`report`: what a rank hands back to the page that launched it."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import torch

from labkit.lesson.evidence import LabError, short

FOLDER = "LABKIT_REPORTS"
"""The variable that tells a rank where its page waits for what it reports."""


def report(**values: Any) -> None:
    """Hand values from a rank back to the page, by name.

    Each call adds to the rank's earlier ones; a name given again gets the new value.
    Tensors arrive on the CPU, detached; NumPy's numbers and arrays as Python's numbers
    and as tensors.  In a script that no page has launched the values are printed.
    Raises LabError for values of other kinds.

    Args:
        values: numbers, strings, None, tensors, arrays, and lists, tuples and dicts of
            them.

    >>> report(loss=0.5)
    reported loss = 0.5
    """
    values = {name: portable(value, name) for name, value in values.items()}
    folder = os.environ.get(FOLDER)
    if folder is None:
        for name, value in values.items():
            print(f"reported {name} = {short(value)}")
        return
    path = Path(folder, f"{os.environ.get('RANK', '0')}.pt")
    if path.exists():
        values = {**torch.load(path, weights_only=True), **values}
    # a rank may be stopped at any moment: what stood there before must stay whole
    part = path.with_suffix(".part")
    torch.save(values, part)
    part.replace(path)


def portable(value: Any, name: str) -> Any:
    """The value as a file can hold it that is read with weights_only=True."""
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, torch.Tensor):
        return value.detach().cpu().clone()
    if isinstance(value, np.generic) and isinstance(value.item(), bool | int | float):
        return value.item()
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        return torch.from_numpy(value.copy())
    if isinstance(value, list | tuple):
        parts = [portable(part, name) for part in value]
        return tuple(parts) if isinstance(value, tuple) else parts
    if isinstance(value, dict):
        return {portable(k, name): portable(part, name) for k, part in value.items()}
    raise LabError(
        f"report: a rank reports numbers, strings, tensors, and lists and dicts of "
        f"them; {name} is a {type(value).__name__}"
    )


def reports(folder: Path, nproc: int) -> tuple[dict[str, Any], ...]:
    """What each rank has reported, in rank order; nothing gives an empty dict."""
    paths = [folder / f"{rank}.pt" for rank in range(nproc)]
    return tuple(
        torch.load(path, weights_only=True) if path.exists() else {} for path in paths
    )
