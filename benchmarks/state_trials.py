"""What `diff_state` costs on a state dict of 1 GB: seconds, and memory beyond the file.

Run alone: `python -m benchmarks.state_trials` (writes 1 GB to the temporary folder).
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch
from torch import nn

from labkit.probe.state import diff_state

LAYERS, WIDTH = 64, 2048  # 64 matrices of 16 MiB
ROUNDS = 5


def model() -> nn.Sequential:
    """Return a model of 1 GB whose own memory is not taken: it is on "meta"."""
    with torch.device("meta"):
        layers = [nn.Linear(WIDTH, WIDTH) for _ in range(LAYERS)]
        return nn.Sequential(*layers)


def write(path: Path) -> int:
    """Write a state of the model's names and shapes; return its size in bytes."""
    state = {
        name: torch.zeros(value.shape) for name, value in model().state_dict().items()
    }
    torch.save(state, path)
    return path.stat().st_size


def resident(kind: str) -> int:
    """Return the bytes that this process has resident: "RssAnon", "RssFile" (Linux)."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{kind}:"):
            return int(line.split()[1]) * 1024
    raise OSError(f"state_trials: /proc/self/status has no {kind}")


def measure(path: Path) -> str:
    """Return a row: seconds of the first and the median call, and MB that it added."""
    net = model()
    before = resident("RssAnon"), resident("RssFile")
    seconds = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        diff = diff_state(net, path)
        seconds.append(time.perf_counter() - start)
        assert len(diff.matched) == 2 * LAYERS, diff
    own, mapped = resident("RssAnon") - before[0], resident("RssFile") - before[1]
    peak = peak_bytes() - sum(before)
    return (
        f"| {seconds[0]:.3f} | {sorted(seconds)[ROUNDS // 2]:.3f} | {own / 1e6:.1f} | "
        f"{mapped / 1e6:.1f} | {peak / 1e6:.1f} |"
    )


def peak_bytes() -> int:
    """Return the most bytes that this process has had resident (Linux)."""
    return resident("VmHWM")


def main() -> None:
    """Print the table; the measuring process is a new one, which wrote no file."""
    if len(sys.argv) > 1:
        print(measure(Path(sys.argv[1])))
        return
    with tempfile.TemporaryDirectory(prefix="labkit-trial-") as folder:
        path = Path(folder, "state.pt")
        print(f"A state dict of {write(path) / 1e9:.2f} GB, {2 * LAYERS} tensors.\n")
        print("| first call, s | median, s | own MB | of the file, MB | peak MB more |")
        print("|--:|--:|--:|--:|--:|", flush=True)
        command = [sys.executable, "-m", "benchmarks.state_trials", str(path)]
        subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
