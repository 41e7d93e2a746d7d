"""What this computer has: cores, memory and disk, where the system tells."""

import ctypes
import os
import shutil
import sys
from pathlib import Path

CGROUP = Path("/sys/fs/cgroup")
MEMINFO = Path("/proc/meminfo")


def cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def memory() -> tuple[int | None, int | None]:
    """Memory in bytes, in all and available now; None where the system does not tell.

    A container's own limit counts where it is lower than the machine's memory.
    """
    if MEMINFO.exists():
        total, free = linux_memory()
        limit, used = container_memory()
        if limit is not None and limit < total:
            return limit, min(free, limit - used)
        return total, free
    if sys.platform == "win32":
        return windows_memory()
    names = getattr(os, "sysconf_names", {})
    if "SC_PHYS_PAGES" in names and "SC_PAGE_SIZE" in names:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"), None
    return None, None


def linux_memory() -> tuple[int, int]:
    """From lines like "MemTotal:  24500000 kB", where kB means 1024 bytes.

    https://www.kernel.org/doc/html/latest/filesystems/proc.html#meminfo
    """
    fields = {}
    for line in MEMINFO.read_text().splitlines():
        name, _, rest = line.partition(":")
        fields[name] = int(rest.split()[0]) * 1024 if rest.split() else 0
    total = fields.get("MemTotal", 0)
    return total, fields.get("MemAvailable", fields.get("MemFree", 0))


def container_memory() -> tuple[int | None, int]:
    """The container's limit in bytes, or None, and what it uses, caches aside.

    https://www.kernel.org/doc/html/latest/admin-guide/cgroup-v2.html
    """
    try:
        limit = (CGROUP / "memory.max").read_text().strip()
        used = int((CGROUP / "memory.current").read_text())
        stat = (CGROUP / "memory.stat").read_text().split()
    except (OSError, ValueError):
        return None, 0
    cached = dict(zip(stat[::2], stat[1::2], strict=False)).get("inactive_file", "0")
    return (int(limit) if limit.isdecimal() else None), max(used - int(cached), 0)


def windows_memory() -> tuple[int | None, int | None]:
    """By GlobalMemoryStatusEx.

    https://learn.microsoft.com/windows/win32/api/sysinfoapi/ns-sysinfoapi-memorystatusex
    """

    class Status(ctypes.Structure):
        _fields_ = (
            ("length", ctypes.c_ulong),
            ("load", ctypes.c_ulong),
            ("total", ctypes.c_ulonglong),
            ("available", ctypes.c_ulonglong),
            *((f"other{n}", ctypes.c_ulonglong) for n in range(5)),
        )

    status = Status(length=ctypes.sizeof(Status))
    kernel = getattr(ctypes, "windll").kernel32  # noqa: B009 - unknown elsewhere
    if not kernel.GlobalMemoryStatusEx(ctypes.byref(status)):
        return None, None
    return status.total, status.available


def free_disk(folder: Path) -> int:
    """Free bytes where `folder` is, or will be once it is made."""
    there = next(path for path in (folder, *folder.parents) if path.exists())
    return shutil.disk_usage(there).free
