"""What a checkpoint's pickle names, read without running any of it."""

import pickletools
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from torch.serialization import get_unsafe_globals_in_checkpoint

# The first part of a name whose call can do anything at all: these are what a harmful
# file calls.  Every other name may be harmless or not; only its owner can know.
_RUNS_CODE = frozenset(
    "os posix nt subprocess builtins __builtin__ sys shutil runpy importlib pty socket "
    "pickle _pickle ctypes code codeop webbrowser asyncio multiprocessing signal "
    "operator _operator functools marshal types".split()
)
# Classes among them that are data.
_DATA = frozenset({"builtins.complex", "builtins.slice", "builtins.range"})


def refusal(path: Path) -> str:
    """Say why `weights_only=True` refuses a file, and which line would allow it.

    Nothing of the file is run: its names are listed by
    `torch.serialization.get_unsafe_globals_in_checkpoint`.
    """
    refused = sorted(get_unsafe_globals_in_checkpoint(str(path)))
    if not refused:
        return (
            f"{path.name} holds something that torch.load(weights_only=True) does not "
            "read"
        )
    running = [name for name in refused if _runs_code(name)]
    if running:
        return (
            f"{path.name} names {_listing(running)}, which loading it without "
            "weights_only=True would run as code: nothing of it was run, and no such "
            "name belongs on an allow-list"
        )
    if any(name.startswith("torch.nn.") for name in refused):
        return (
            f"{path.name} holds a whole pickled module ({_listing(refused)}), which "
            "torch.load(weights_only=True) refuses: save `model.state_dict()` instead"
        )
    allowed = [*refused, *_numpy_dtypes(path, refused)]
    return (
        f"{path.name} holds {_listing(refused)}, which torch.load(weights_only=True) "
        "refuses: save plain numbers, strings and tensors instead, or, for a file "
        "whose source is trusted, allow them first with "
        f"`torch.serialization.add_safe_globals([{', '.join(allowed)}])`"
    )


def _runs_code(name: str) -> bool:
    return name.partition(".")[0] in _RUNS_CODE and name not in _DATA


def _numpy_dtypes(path: Path, refused: list[str]) -> list[str]:
    """Return the dtype classes that NumPy values need on an allow-list beside dtype.

    They are no names in the file: `numpy.dtype` makes them from a code such as "f8".
    """
    if "numpy.dtype" not in refused:
        return []
    codes: set[str] = set()
    memo: Any
    expecting, memo, last = False, None, None
    for operation, argument, _ in pickletools.genops(_pickled(path)):
        if operation.name.endswith("PUT"):  # gives what came last a number
            memo = argument if last == "numpy dtype" else memo
            continue
        if expecting and operation.name.endswith("UNICODE"):
            codes.add(str(argument))
        again = operation.name.endswith("GET") and argument == memo
        expecting = argument == "numpy dtype" or again
        last = argument
    classes = {type(np.dtype(code)).__name__ for code in codes if _is_dtype(code)}
    return [f"numpy.dtypes.{name}" for name in sorted(classes)]


def _is_dtype(code: str) -> bool:
    try:
        np.dtype(code)
    except TypeError:
        return False
    return True


def _pickled(path: Path) -> bytes:
    with zipfile.ZipFile(path) as file:
        name = next(n for n in file.namelist() if n.endswith("data.pkl"))
        return file.read(name)


def _listing(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names[:5]) + (
        f" and {len(names) - 5} more" if len(names) > 5 else ""
    )
