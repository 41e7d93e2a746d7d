"""What `track_memory` and its peers cost, and whether they count right.

Run alone: `python -m benchmarks.memory_trials` (about a minute and a half).
"""

import contextlib
import random
import time
from collections.abc import Callable, Iterator
from statistics import median

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.benchmark import set_torch_threads

from labkit.measure.memory import track_memory

Run = Callable[[], object]
STEPS = 100
OURS, PROFILER, TRACKER = (
    "`track_memory`",
    "`torch.profiler`, `profile_memory=True`",
    "`MemTracker`",
)
OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "SGD": lambda p: torch.optim.SGD(p, lr=0.01),
    "Adam, single tensors": lambda p: torch.optim.Adam(p, foreach=False),
    "Adam, foreach": lambda p: torch.optim.Adam(p, foreach=True),
    "Adam, fused": lambda p: torch.optim.Adam(p, fused=True),
}


class Training:
    """One step of a tiny MLP: 64×256 into 256-256-10."""

    def __init__(self, optimizer: Callable[..., torch.optim.Optimizer]) -> None:
        torch.manual_seed(0)
        self.model = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10))
        self.optimizer = optimizer(self.model.parameters())
        self.inputs = torch.randn(64, 256), torch.randint(0, 10, (64,))

    def step(self) -> None:
        x, y = self.inputs
        self.optimizer.zero_grad()
        F.cross_entropy(self.model(x), y).backward()
        self.optimizer.step()

    def untracked(self) -> None:
        for _ in range(STEPS):
            self.step()

    def tracked(self) -> None:
        with track_memory(self.model, self.optimizer, self.inputs):
            self.untracked()

    def profiled(self) -> None:
        with torch.profiler.profile(
            activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True
        ):
            self.untracked()

    def mem_tracked(self) -> None:
        from torch.distributed._tools.mem_tracker import MemTracker

        tracker = MemTracker()
        tracker.track_external(self.model, self.optimizer, *self.inputs)
        with tracker:
            for _ in range(STEPS):
                self.step()
                tracker.reset_mod_stats()  # it refuses a second step without


def overhead(rounds: int = 15) -> dict[str, dict[str, tuple[float, float]]]:
    """Time 100 steps untracked and tracked, in random order, round by round.

    Args:
        rounds: how often each way is timed for each optimizer.

    Returns:
        By optimizer and method: the median over the rounds of tracked ÷ untracked, and
        the least time tracked ÷ the least untracked.
    """
    shuffle = random.Random(0).shuffle
    found: dict[str, dict[str, tuple[float, float]]] = {}
    for name, optimizer in OPTIMIZERS.items():
        training = Training(optimizer)
        ways: dict[str, Run] = {
            "untracked": training.untracked,
            OURS: training.tracked,
            PROFILER: training.profiled,
            TRACKER: training.mem_tracked,
        }
        times: dict[str, list[float]] = {way: [] for way in ways}
        for run in ways.values():
            run()
        for _ in range(rounds):
            order = list(ways)
            shuffle(order)
            for way in order:
                start = time.perf_counter()
                ways[way]()
                times[way].append(time.perf_counter() - start)
        plain = times.pop("untracked")
        found[name] = {
            way: (
                median(a / b for a, b in zip(taken, plain, strict=True)),
                min(taken) / min(plain),
            )
            for way, taken in times.items()
        }
    return found


def _cases() -> Iterator[tuple[str, Run, int]]:
    """Yield what to run, and the peak of what it makes, in bytes, found by hand."""

    def views() -> object:
        x = torch.ones(10, 25)
        return [x.t(), x[1:], x.view(-1), x.detach(), *x.split(2)]

    yield "a tensor of 1,000 bytes and nine views", views, 1000

    def loop() -> None:
        for _ in range(10):
            x = torch.ones(250)
            del x

    yield "a loop that frees 1,000 bytes each time", loop, 1000

    def kept() -> None:
        for _ in range(10):
            x = torch.ones(250)  # noqa: F841

    yield "the same, held until the next is made", kept, 2000

    def in_place() -> object:
        return torch.ones(250).exp_().neg_().relu_()

    yield "in-place operators on 1,000 bytes", in_place, 1000

    def expand() -> object:
        return torch.ones(1, 250).expand(1000, 250)

    yield "1,000 bytes expanded to a million", expand, 1000

    def error() -> None:
        def fail() -> None:
            x = torch.ones(250)  # noqa: F841
            raise ValueError

        with contextlib.suppress(ValueError):
            fail()
        torch.ones(250)

    yield "an error that frees, then as much again", error, 1000

    sparse = torch.sparse_coo_tensor([[0, 1, 2]], torch.ones(3), check_invariants=False)

    def coalesce() -> object:
        return sparse.coalesce()

    yield "a sparse tensor: three indices and values", coalesce, 3 * 8 + 3 * 4

    big, small = 4 * 100 * 50, 4 * 50
    state = 2 * (big + small) + 2 * 4
    scratch = {
        "Adam, single tensors": 2 * big,
        "Adam, foreach": big + small,
        "Adam, fused": 0,
    }
    for name, more in scratch.items():
        layer = nn.Linear(100, 50)
        optimizer = OPTIMIZERS[name](layer.parameters())
        for parameter in layer.parameters():
            parameter.grad = torch.ones_like(parameter)
        yield f"{name}: state and scratch of a step", optimizer.step, state + more

    model = nn.Sequential(
        nn.Conv2d(3, 4, 3, padding=1, bias=False),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(256, 10),
    )
    x, image = torch.ones(2, 3, 8, 8), 4 * 2 * 4 * 8 * 8

    def forward() -> object:
        return model(x)

    # what conv, norm and relu made, at the moment when relu has
    yield "a small ConvNet's forward", forward, 3 * image + 2 * 16


def _peak_of_profile(run: Run) -> int:
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True
    ) as profile:
        kept = run()
    del kept
    assert profile.profiler is not None
    assert profile.profiler.kineto_results is not None
    events = [
        (event.start_ns(), event.nbytes())
        for event in profile.profiler.kineto_results.events()
        if event.name() == "[memory]"
    ]
    now = peak = 0
    for _, nbytes in sorted(events, key=lambda event: event[0]):
        now += nbytes
        peak = max(peak, now)
    return peak


def _peak_of_tracker(run: Run) -> int | str:
    from torch.distributed._tools.mem_tracker import MemTracker

    tracker = MemTracker()
    try:
        with tracker:
            kept = run()
    except Exception as error:
        return type(error).__name__
    del kept
    totals = tracker.get_tracker_snapshot("peak").values()
    return sum(total["Total"] for total in totals)


def exactness() -> list[tuple[str, int, int, int | str, int | str]]:
    """Count each case in three ways.

    Returns:
        For each case its name, the peak in bytes found by hand, and what
        `track_memory`, the profiler and `MemTracker` say (or the error it raised).
    """
    rows = []
    # anew for each method: an optimizer's first step makes its state
    for index, (name, run, by_hand) in enumerate(_cases()):
        with track_memory() as trace:
            kept = run()
        del kept
        again = [list(_cases())[index][1] for _ in range(2)]
        peers = _peak_of_profile(again[0]), _peak_of_tracker(again[1])
        rows.append((name, by_hand, trace.peak_bytes, *peers))
    return rows


def report(rounds: int = 15) -> str:
    """Run all and return two Markdown tables: overhead, and exactness.

    Args:
        rounds: how often each way is timed for each optimizer.

    Returns:
        Markdown.

    Example:
        >>> print(report(rounds=3))
    """
    with set_torch_threads(1):
        ratios = overhead(rounds)
    rows = [f"| step | {OURS} | {PROFILER} | {TRACKER} |", "|---|--:|--:|--:|"]
    for name, ways in ratios.items():
        cells = [f"{middle:.2f}× ({best:.2f}×)" for middle, best in ways.values()]
        rows.append(f"| {name} | " + " | ".join(cells) + " |")
    rows += [
        "",
        f"Tracked ÷ untracked, {STEPS} steps of a tiny MLP (64×256 into 256-256-10) in "
        f"one block, one thread, {rounds} rounds in random order: the median of the "
        "rounds, and in brackets the best times' ratio.",
        "",
        f"| peak bytes of | by hand | {OURS} | {PROFILER} | {TRACKER} |",
        "|---|--:|--:|--:|--:|",
    ]
    for name, by_hand, *said in exactness():
        cells = [f"{n:,}" if isinstance(n, int) else n for n in said]
        rows.append(f"| {name} | {by_hand:,} | " + " | ".join(cells) + " |")
    rows += [
        "",
        "The profiler counts what the allocator does, scratch inside operators "
        "included: on a CPU nobody else sees that. Its peak is the highest running sum "
        "of its memory events.",
    ]
    return "\n".join(rows)


if __name__ == "__main__":
    print(report())
