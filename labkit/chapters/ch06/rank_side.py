"""A learner's function on real ranks: the ranks' side of the exercises of part 6.2."""

import importlib
import linecache
import os
import re
import time
import traceback
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
from torch.distributed import destroy_process_group, init_process_group

from labkit.launch.report import report

WAIT = timedelta(seconds=10)
"""How long a collective waits for the other ranks before it raises."""

UNMATCHED = (
    "a collective that not every rank comes to, or not with a tensor of the same shape: is "
    "it inside an `if` on the rank, or behind one that returns?"
)


def on_each(
    home: str, names: list[str], look: Callable[[Callable[..., Any]], dict[str, Any]]
) -> None:
    """Import the answers and report what `look` notes about each, under its name.

    The process group is made here, once: torch cannot make a second one in a process
    reliably, as the ranks find the addresses of the first.  An answer that raises gets
    its error noted.
    """
    enough = torch.cuda.device_count() >= int(os.environ["LOCAL_WORLD_SIZE"])
    init_process_group("cpu:gloo,cuda:nccl" if enough else "gloo", timeout=WAIT)
    module = importlib.import_module(home)
    for name in names:
        answer = getattr(module, name)
        meet(f"{name} begins")
        try:
            values = {"error": "", **look(answer)}
        except Exception as error:
            values = {"error": told(error, answer.__code__.co_filename)}
        report(**{name: values})
        if values["error"] and len(names) == 1:
            os._exit(1)  # what is half done may wait for ever to be put away
        meet(f"{name} ends")
    destroy_process_group()


def meet(what: str, longest: timedelta = 3 * WAIT) -> None:
    """Wait for the other ranks: by files, since a collective could meet the answer's."""
    place = Path(os.environ["TMPDIR"])
    name = what.replace(" ", "-")
    (place / f"{name}.{os.environ['RANK']}").touch()
    end = time.monotonic() + longest.total_seconds()
    while len(list(place.glob(f"{name}.*"))) < int(os.environ["WORLD_SIZE"]):
        if time.monotonic() > end:
            return
        time.sleep(0.005)


def told(error: Exception, file: str) -> str:
    """The error in one line, with the line of the answer it came from."""
    first = (str(error).strip() or "no message").splitlines()[0]
    if isinstance(error, RuntimeError) and re.search(
        "gloo|nccl|timed? out", first, re.I
    ):
        first = f"it waited for {UNMATCHED}"
    text = f"`{type(error).__name__}`: {first}"
    lines = [
        f.lineno
        for f in traceback.extract_tb(error.__traceback__)
        if f.filename == file and f.lineno
    ]
    if lines:
        text += f" (line {lines[-1]}: `{linecache.getline(file, lines[-1]).strip()}`)"
    return text
