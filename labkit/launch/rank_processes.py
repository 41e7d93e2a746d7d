"""The processes of one launch: found by a mark in their environment, and ended."""

import contextlib
import os
import re
import signal
import subprocess
import time
from pathlib import Path

MARK = "LABKIT_LAUNCH"
"""The variable whose value all processes of one launch inherit, and no others."""

GRACE = 2.0  # seconds between asking to end and ending


def stop(launcher: "subprocess.Popen[bytes]", mark: str) -> None:
    """End the launcher, its ranks and whatever these have started.

    torchrun gives each rank a session of its own, so that ending the launcher's process
    group alone would leave them running.
    """
    if os.name == "nt":
        if launcher.poll() is None:
            ending = ["taskkill", "/F", "/T", "/PID", str(launcher.pid)]
            subprocess.run(ending, capture_output=True, check=False)
            launcher.wait()
        return
    known = set(members(launcher, mark))
    send(known, signal.SIGTERM)
    end = time.monotonic() + GRACE
    while time.monotonic() < end and (left := alive(launcher, mark, known)):
        known |= left
        time.sleep(0.05)
    # a process may have started another while it was looked for
    for _ in range(20):
        left = alive(launcher, mark, known)
        if not left:
            break
        known |= left
        send(left, signal.SIGKILL)
        time.sleep(0.05)
    launcher.wait()


def end_others(mark: str) -> None:
    """End all processes of a launch but this one, its launcher, at once."""
    own = os.getpid()
    if os.name == "nt":  # this one is ended as well
        ending = ["taskkill", "/F", "/T", "/PID", str(own)]
        subprocess.run(ending, capture_output=True, check=False)
        return
    for _ in range(100):  # a process may have started another while it was looked for
        found = marked(mark) if Path("/proc").is_dir() else descendants(own)
        others = {pid for pid in found if pid != own and exists(pid)}
        if not others:
            break
        send(others, signal.SIGKILL)
        time.sleep(0.05)


def alive(launcher: "subprocess.Popen[bytes]", mark: str, known: set[int]) -> set[int]:
    launcher.poll()  # takes note of its end, which would else leave a zombie
    if Path("/proc").is_dir():
        return set(members(launcher, mark))
    running = set(members(launcher, mark)) | {pid for pid in known if exists(pid)}
    return running - ({launcher.pid} if launcher.returncode is not None else set())


def members(launcher: "subprocess.Popen[bytes]", mark: str) -> dict[int, str | None]:
    """The ids of a launch's processes, each with its rank where that is known."""
    if Path("/proc").is_dir():
        return marked(mark)
    return descendants(launcher.pid) if launcher.poll() is None else {}


def marked(mark: str) -> dict[int, str | None]:
    """The processes whose environment holds the mark, as /proc lists it (Linux)."""
    found: dict[int, str | None] = {}
    wanted = f"{MARK}={mark}".encode()
    for place in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):  # another user's, or ended meanwhile
            entries = place.read_bytes().split(b"\0")
            if wanted in entries:
                ranks = [e[5:].decode() for e in entries if e.startswith(b"RANK=")]
                found[int(place.parent.name)] = ranks[0] if ranks else None
    return found


def descendants(pid: int) -> dict[int, str | None]:
    """The process and all that descend from it, as ps lists them (macOS)."""
    listing = subprocess.run(
        ["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True, check=False
    )
    pairs = re.findall(r"(\d+)\s+(\d+)", listing.stdout)
    found = {pid}
    grown = True
    while grown:
        children = {int(child) for child, parent in pairs if int(parent) in found}
        grown = not children <= found
        found |= children
    return dict.fromkeys(found)


def exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True


def send(pids: set[int], kind: signal.Signals) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, kind)
