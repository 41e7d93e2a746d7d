"""All instruments against their peers, from one run: `python -m benchmarks.instruments`.

Takes about ten minutes; run it on a machine that does nothing else.
"""

import argparse
import datetime
import os
import platform
import subprocess
import sys
from statistics import median

import numpy
import torch

from benchmarks import memory_trials, timing_trials

_IMPORT = """
import time
import numpy, torch
start = time.perf_counter()
import labkit
print(time.perf_counter() - start)
"""


def import_cost(repeats: int = 11) -> str:
    """Time `import labkit` in new processes that have torch and numpy already.

    Args:
        repeats: how many processes.

    Returns:
        One sentence with the median, the least and the most, in seconds.
    """
    seconds = []
    for _ in range(repeats + 1):
        command = [sys.executable, "-c", _IMPORT]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        seconds.append(float(done.stdout))
    del seconds[0]  # it reads the files into the system's cache
    return (
        f"`import labkit` adds {median(seconds):.3f} s to `import numpy, torch` "
        f"(median of {repeats} processes; {min(seconds):.3f} to {max(seconds):.3f} s)."
    )


def header() -> str:
    """Return the date, the machine and the versions, as one Markdown paragraph."""
    versions = {
        "Python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": numpy.__version__,
    }
    said = ", ".join(f"{name} {version}" for name, version in versions.items())
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    machine = f"{_processor()}, {os.cpu_count()} cores, {platform.system()}"
    load = ""
    if hasattr(os, "getloadavg"):
        load = f" Load when it began: {os.getloadavg()[0]:.1f}."
    return f"{today}. {machine}. {said}.{load}"


def _processor() -> str:
    try:
        with open("/proc/cpuinfo") as file:
            names = [line for line in file if line.startswith("model name")]
        return names[0].partition(":")[2].strip()
    except (OSError, IndexError):
        return platform.processor() or platform.machine()


def main() -> None:
    """Print everything as Markdown, part by part as it is ready."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=60, help="of compare")
    parser.add_argument("--peer-trials", type=int, default=20, help="of its peers")
    parser.add_argument("--rounds", type=int, default=15, help="of memory overhead")
    options = parser.parse_args()
    print(header(), flush=True)
    # what is short and wants a quiet machine comes first
    print("\n## Import\n")
    print(import_cost(), flush=True)
    print("\n## Memory\n")
    print(memory_trials.report(options.rounds), flush=True)
    print("\n## Timing\n")
    print(timing_trials.report(options.trials, options.peer_trials), flush=True)


if __name__ == "__main__":
    main()
