"""Reading a checkpoint for a look at it: mapped, on the CPU, and weights only."""

import pickle
from pathlib import Path
from typing import Any

import torch

from labkit.probe.state_pickle import refusal

_ZIP = b"PK\x03\x04"
# The magic number that torch.save wrote before 1.6, as pickle writes it.
_LEGACY = bytes.fromhex("80028a0a6cfc9c46f9206aa85019")


class _Seen:
    """A `map_location` of "cpu" that notes where each storage was."""

    def __init__(self) -> None:
        self.devices: set[str] = set()

    def __call__(self, storage: Any, location: str) -> Any:
        self.devices.add(location)
        return storage


def read_state(path: Path) -> tuple[Any, tuple[str, ...]]:
    """Return what a file of `torch.save` holds, and the devices it was saved from.

    The tensors are mapped from the file, and their values read only when they are used;
    a file written before torch 1.6 cannot be mapped and is read whole.  Nothing in the
    file is run: `weights_only=True`.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: a folder, an empty file, one that is damaged or was not written by
            torch.save, or one that weights_only=True refuses.
    """
    head = _head(path)
    if not head:
        raise ValueError(f"diff_state: {path.name} is empty: nothing was saved in it.")
    if not head.startswith((_ZIP, _LEGACY)):
        kind = "is a plain pickle" if head[:1] == b"\x80" else "is something else"
        raise ValueError(
            f"diff_state: {path.name} was not written by torch.save (it {kind}), and "
            "was not opened."
        )
    mapped = head.startswith(_ZIP)
    seen = _Seen()
    try:
        state = torch.load(path, map_location=seen, weights_only=True, mmap=mapped)
    except pickle.UnpicklingError as error:
        said = refusal(path) if mapped else _first_line(path, error)
        raise ValueError(f"diff_state: {said}.") from None
    except (RuntimeError, EOFError, KeyError, OSError, ValueError) as error:
        said = str(error).split(". ")[0] or type(error).__name__
        raise ValueError(
            f"diff_state: {path.name} was not read, since it is cut off, damaged or of "
            f"another kind; torch says: {said.strip()}."
        ) from None
    return state, tuple(sorted(seen.devices))


def _head(path: Path) -> bytes:
    if path.is_dir():
        raise ValueError(
            f"diff_state: {path.name or path} is a folder: give the file in it that "
            "torch.save wrote."
        )
    if not path.exists():
        raise FileNotFoundError(
            f"diff_state: there is no file {str(path)!r} (the current folder is "
            f"{str(Path.cwd())!r})."
        )
    try:
        with path.open("rb") as file:
            return file.read(len(_LEGACY))
    except OSError as error:
        raise ValueError(
            f"diff_state: {path.name} cannot be read: {error.strerror or error}."
        ) from None


def _first_line(path: Path, error: Exception) -> str:
    lines = [line for line in str(error).splitlines() if "nsupported" in line]
    said = lines[0].strip() if lines else "the pickle is of an unknown kind"
    return (
        f"{path.name} is refused by torch.load(weights_only=True): {said.rstrip('.')}"
    )


def unusable(devices: tuple[str, ...]) -> tuple[str, ...]:
    """Return those devices that this machine or this build of torch has not."""
    return tuple(name for name in devices if not _usable(name))


def _usable(name: str) -> bool:
    if name.startswith(("cpu", "meta")):
        return True
    try:
        torch.empty(0, device=name)
    except Exception:  # each backend raises errors of its own kinds
        return False
    return True
