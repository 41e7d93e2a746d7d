"""What a probe costs: its time over that of one training step of a ResNet-18.

Run alone: `python -m benchmarks.probe_trials` (about a minute).
"""

import time
from collections.abc import Callable, Iterator
from statistics import median

import torch
from torch import nn
from torch.nn import functional as F

from labkit.probe.gradient_result import GradientReport
from labkit.probe.gradients import gradient_report
from labkit.probe.mode_result import ModeReport
from labkit.probe.modes import mode_report

ROUNDS = 7


class Block(nn.Module):
    """A residual block of two 3×3 convolutions."""

    def __init__(self, inside: int, outside: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inside, outside, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outside)
        self.conv2 = nn.Conv2d(outside, outside, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outside)
        self.relu = nn.ReLU(inplace=True)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or inside != outside:
            self.shortcut = nn.Sequential(
                nn.Conv2d(inside, outside, 1, stride, bias=False),
                nn.BatchNorm2d(outside),
            )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        return self.relu(out + self.shortcut(x))


def resnet18(classes: int = 1000) -> nn.Sequential:
    """Return a ResNet-18 (He et al., 2016): 11.7 million parameters, 1,000 classes."""
    layers: list[nn.Module] = [
        nn.Conv2d(3, 64, 7, 2, 3, bias=False),
        nn.BatchNorm2d(64),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(3, 2, 1),
    ]
    inside = 64
    for outside in (64, 128, 256, 512):
        layers.append(Block(inside, outside, 1 if outside == 64 else 2))
        layers.append(Block(outside, outside, 1))
        inside = outside
    return nn.Sequential(
        *layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, classes)
    )


def training_step(
    model: nn.Module, batch: int, size: int
) -> tuple[torch.optim.Optimizer, Callable[[], None]]:
    """Return an optimizer for the model, and one step on random images."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    x, y = torch.randn(batch, 3, size, size), torch.randint(0, 1000, (batch,))

    def step() -> None:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()

    return optimizer, step


def seconds(call: Callable[[], object]) -> float:
    """Return the processor time of one call: other programs don't count."""
    start = time.thread_time()
    call()
    return time.thread_time() - start


def trial(batch: int, size: int) -> Iterator[str]:
    """Time steps and reports by turns; yield a row of the table for each report."""
    model = resnet18()
    optimizer, step = training_step(model, batch, size)
    x = torch.randn(batch, 3, size, size)

    def evaluate() -> None:
        model.eval()
        with torch.no_grad():
            model(x)
        model.train()

    reports: dict[str, Callable[[], GradientReport | ModeReport]] = {
        "`gradient_report`, a step": lambda: gradient_report(
            model, optimizer=optimizer, step=step
        ),
        "`mode_report`, inputs": lambda: mode_report(model, x),
        "`mode_report`, an evaluation": lambda: mode_report(model, evaluate=evaluate),
    }
    step()
    for name, report in reports.items():
        found = report()
        assert not found.findings, found
        steps, taken = [], []
        for _ in range(ROUNDS):
            steps.append(seconds(step))
            taken.append(seconds(report))
        ratios = [one / step for one, step in zip(taken, steps, strict=True)]
        yield (
            f"| {name} | {batch} images of {size}×{size} | {1e3 * median(steps):.0f} ms "
            f"| {1e3 * median(taken):.0f} ms | {median(ratios):.2f} "
            f"| {min(ratios):.2f}–{max(ratios):.2f} |"
        )


def main() -> None:
    """Print the table, for one thread."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    print("| report | ResNet-18, AdamW | a step | the report | median ratio | rounds |")
    print("|---|---|--:|--:|--:|---|")
    for batch, size in ((8, 64), (16, 64), (8, 224)):
        for row in trial(batch, size):
            print(row, flush=True)


if __name__ == "__main__":
    main()
