"""The memory of a worker process, as far as the system tells it without asking long."""

import time
from pathlib import Path
from typing import NamedTuple

_FIELDS = ("Pss:", "Private_Dirty:", "Shared_Dirty:")


class Memory(NamedTuple):
    """Bytes of one process: its proportional share, and written pages by who has them.

    `private` it has alone; `shared` others have too: after a fork, what no one has
    written to since.
    """

    share: int
    private: int
    shared: int


def read_memory(pid: int | str = "self") -> Memory | None:
    """Return a process's memory in bytes; None where the system does not tell.

    The proportional share (PSS) counts a page that n processes share as 1/n of it.
    Source: `man 5 proc_pid_smaps`, fields Pss, Private_Dirty and Shared_Dirty.
    """
    try:
        told = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii")
        rows = (line.split() for line in told.splitlines()[1:])
        sizes = {row[0]: int(row[1]) * 1024 for row in rows}
        return Memory(*(sizes[name] for name in _FIELDS))
    except (OSError, KeyError, ValueError, IndexError):
        return None


class MemoryMeter:
    """Reads the memory after a worker's batches 1, 2, 4, 8, …, and in between if cheap.

    Adding up a big process's pages takes milliseconds: beside those readings at most
    2 % of the time since the start goes into it.
    """

    def __init__(self) -> None:
        self.began = time.perf_counter()
        self.spent = 0.0
        self.possible = True

    def look(self, due: bool) -> Memory | None:
        """Return the memory, or None where it is not worth a reading now."""
        elapsed = time.perf_counter() - self.began
        if not self.possible or not (due or self.spent < 0.02 * elapsed):
            return None
        start = time.perf_counter()
        memory = read_memory()
        self.spent += time.perf_counter() - start
        self.possible = memory is not None
        return memory
