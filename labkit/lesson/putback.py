"""The process-wide state and the output streams, put back after a learner's code."""

import contextlib
import gc
import os
import sys
import warnings
from collections.abc import Callable
from typing import Any, TextIO

import numpy as np
import torch

from labkit.probe.rng import kept_rng


class Capped:
    """A text stream that passes on what `budget` allows and drops the rest."""

    def __init__(self, stream: TextIO, budget: list[int], limit: int) -> None:
        self.stream = stream
        self.budget = budget  # bytes left, shared by stdout and stderr
        self.limit = limit
        self.lifted = False  # True once the block has ended: a logger may keep this

    def write(self, text: str) -> int:
        if self.lifted:
            return self.stream.write(text)
        left = self.budget[0]
        if left <= 0:
            return len(text)
        data = text.encode("utf-8", "replace")
        self.budget[0] -= len(data)
        if len(data) <= left:
            self.stream.write(text)
        else:
            kept = data[:left].decode("utf-8", "ignore")
            size = f"{self.limit / 1024:.3g} kB"
            self.stream.write(f"{kept}\n… output cut at {size}\n")
            self.budget[0] = 0
        return len(text)

    def writelines(self, lines: list[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


def cap_output(undo: contextlib.ExitStack, limit: int) -> None:
    """Cap sys.stdout and sys.stderr together at `limit` bytes, until `undo` closes."""
    budget = [limit]
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is not None:  # pythonw has none
            capped = Capped(stream, budget, limit)
            undo.callback(setattr, capped, "lifted", True)
            setattr(sys, name, capped)
        undo.callback(setattr, sys, name, stream)


def put_back_state(undo: contextlib.ExitStack) -> None:
    """Note the process-wide state that a few lines of torch can change, for `undo`."""
    settings: list[tuple[Callable[[], Any], Callable[[Any], Any]]] = [
        (sys.getrecursionlimit, sys.setrecursionlimit),
        (torch.get_default_dtype, torch.set_default_dtype),
        (np.geterr, lambda kept: np.seterr(**kept)),
        (torch.is_warn_always_enabled, torch.set_warn_always),
        (gc.isenabled, lambda on: gc.enable() if on else gc.disable()),
    ]
    undo.enter_context(kept_rng())
    for get, put in settings:
        undo.callback(put, get())
    checks = torch.is_anomaly_check_nan_enabled()
    undo.callback(torch.autograd.set_detect_anomaly, torch.is_anomaly_enabled(), checks)
    undo.callback(restore_deterministic, *deterministic())
    undo.callback(restore_threads, torch.get_num_threads())
    undo.callback(restore_device, default_device())
    with contextlib.suppress(OSError):  # the folder was gone before
        undo.callback(restore_folder, os.getcwd())
    undo.enter_context(warnings.catch_warnings())
    grad = torch.is_grad_enabled()
    # Leaving inference mode restores what was, however often the block changed it;
    # entering it switches grad mode, so that comes second.
    undo.enter_context(torch.inference_mode(torch.is_inference_mode_enabled()))
    undo.callback(torch.set_grad_enabled, grad)
    torch.set_grad_enabled(grad)


def deterministic() -> tuple[bool, bool]:
    return (
        torch.are_deterministic_algorithms_enabled(),
        torch.is_deterministic_algorithms_warn_only_enabled(),
    )


def restore_deterministic(on: bool, warn_only: bool) -> None:
    # The call imports torch's compiler (seconds), so only where something changed.
    if deterministic() != (on, warn_only):
        torch.use_deterministic_algorithms(on, warn_only=warn_only)


def restore_threads(count: int) -> None:
    # Setting the same count again would still start OpenMP's pool anew.
    if torch.get_num_threads() != count:
        torch.set_num_threads(count)


def default_device() -> torch.device:
    try:
        return torch.get_default_device()
    except AttributeError:  # torch 2.6 after set_default_device(None)
        return torch.device("cpu")


def restore_device(device: torch.device) -> None:
    if default_device() == device:
        return
    # Any default device, "cpu" too, is a mode that slows every call; None is not.
    torch.set_default_device(None if device.type == "cpu" else device)
    try:
        torch.get_default_device()
    except AttributeError:
        torch.set_default_device(device)


def restore_folder(folder: str) -> None:
    with contextlib.suppress(OSError):  # the block removed it
        os.chdir(folder)
