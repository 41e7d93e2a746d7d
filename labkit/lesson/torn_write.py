"""A write that breaks off in the middle, as if the process had been killed there."""

import io
import os
import signal
import sys
from pathlib import Path
from typing import Any

import torch

WHOLE_SAVE = torch.save


def tear_writes(size: int) -> None:
    """Let this process end as soon as a file that it writes is longer than `size` bytes.

    The system's limit on file sizes ends it in the middle of the write, as a kill would,
    and nothing of Python runs any more.  Windows has no such limit: there `torch.save`
    writes half of the bytes, and the process ends itself.
    """
    if sys.platform == "win32":
        torch.save = half_of_it
        return
    import resource

    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def half_of_it(state: Any, file: Any, *args: Any, **kwargs: Any) -> None:
    """A torch.save during which the process ends."""
    whole = io.BytesIO()
    WHOLE_SAVE(state, whole)
    half = whole.getvalue()[: whole.tell() // 2]
    if hasattr(file, "write"):
        file.write(half)
        file.flush()
    else:
        Path(file).write_bytes(half)
    os._exit(1)
