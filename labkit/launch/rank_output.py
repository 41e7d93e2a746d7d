"""What the ranks of a launch wrote, and what torchrun says about one that failed."""

import re
import signal
from pathlib import Path

HEAD, TAIL = 6_000, 2_000
"""Bytes that are kept of the beginning and the end of what one rank wrote."""

# Lines of torch's C++ side and of its loggers: they bear times and addresses.
NOISE = re.compile(r"\[?[WIEF]\d{4} \d\d:|\[Gloo\] Rank \d+ is connected")
PREFIX = re.compile(r"^\[rank\d+\]:\s?")
# where a cell module lies, and which thread faulthandler writes of
VARIES = re.compile(r"[^\s\"']*labkit-cells-\w+[/\\]|(?<=^Thread )0x\w+ ", re.MULTILINE)


def outputs(logs: Path, nproc: int, script: Path) -> tuple[str, ...]:
    """What each rank wrote, in rank order: its output, then its errors and warnings."""
    return tuple(
        "\n".join(
            line
            for name in ("stdout.log", "stderr.log")
            for line in lines(logs, rank, name, script)
        )
        for rank in range(nproc)
    )


def lines(logs: Path, rank: int, name: str, script: Path) -> list[str]:
    """The lines of one stream of a rank, the script called by its name alone."""
    found = sorted(logs.glob(f"*/attempt_*/{rank}/{name}"))
    if not found:
        return []
    text = VARIES.sub("", capped(found[-1]).replace(str(script), script.name))
    cleaned = [PREFIX.sub("", line) for line in text.splitlines()]
    return [line.rstrip() for line in cleaned if not NOISE.match(line)]


def capped(path: Path) -> str:
    """A file's text, or its beginning and end and how much is left out between them."""
    size = path.stat().st_size
    with path.open("rb") as file:
        if size <= HEAD + TAIL:
            return file.read().decode(errors="replace")
        head = file.read(HEAD).rpartition(b"\n")[0]
        file.seek(size - TAIL)
        tail = file.read().partition(b"\n")[2]
    left = size - len(head) - len(tail)
    parts = (head.decode(errors="replace"), tail.decode(errors="replace"))
    return f"{parts[0]}\n… {left:,} more bytes are not shown …\n{parts[1]}"


def written(logs: Path) -> int:
    """The bytes that all ranks have written so far."""
    return sum(path.stat().st_size for path in logs.rglob("*.log"))


def failure(log: str, logs: Path, script: Path) -> str:
    """Why torchrun ended with an error, in one sentence, from what it wrote."""
    cause = log.rpartition("Root Cause")[2]
    rank = re.search(r"rank\s*:\s*(\d+)", cause)
    code = re.search(r"exitcode\s*:\s*(-?\d+)", cause)
    if not rank or not code:
        said = [line.strip() for line in log.splitlines() if line.strip()]
        last = said[-1] if said else "it wrote nothing"
        if re.search(r"address already in use|failed to bind", log, re.IGNORECASE):
            return f"torchrun found no free port: {last}"
        return f"torchrun could not run the ranks: {last}"
    number, ended = int(rank[1]), int(code[1])
    if ended < 0:
        how = f"was ended by {signal_name(-ended)}"
    else:
        how = f"ended with exit code {ended}"
        errors = [ln for ln in lines(logs, number, "stderr.log", script) if ln.strip()]
        if errors:
            how += f": {errors[-1].strip()}"
    return f"rank {number} {how.rstrip('.')}"


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
