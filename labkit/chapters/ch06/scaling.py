"""A model of how training scales on several GPUs: DataParallel beside DDP.

What it assumes.  Each GPU gets a batch of the same size, and computes forward and
backward in the time that one GPU needs, a third and two thirds of it.  A link carries
`bandwidth` in each direction, and starting a transfer costs nothing.

DDP: the gradients are averaged by a ring all-reduce, in which each GPU sends
2 (n - 1) / n of the bytes (Patarasuk and Yuan, 2009, "Bandwidth optimal all-reduce
algorithms for clusters of workstations").  It runs during the backward, but for the last
bucket of at most 25 MB, which is ready only when the backward ends (Li and others, 2020,
"PyTorch Distributed: experiences on accelerating data parallel training").

DataParallel: GPU 0 sends its parameters to the others, one after the other, before each
forward, and adds up their gradients in the same way after the backward; nothing overlaps.
Left out: the inputs and outputs that GPU 0 hands out and collects, and Python, which is
one process for all GPUs.  With them DataParallel would be slower.
"""

from dataclasses import dataclass

BUCKET = 25e6
"""Bytes of a bucket, DDP's `bucket_cap_mb` by default."""


def all_reduce_seconds(
    size: float, n: int, bandwidth: float, latency: float = 0.0
) -> float:
    """The time of a ring all-reduce of `size` bytes over `n` ranks.

    `bandwidth` in bytes a second, `latency` in seconds for each of its 2 (n - 1) rounds.

    >>> all_reduce_seconds(100e6, n=4, bandwidth=10e9)
    0.015
    """
    return 2 * (n - 1) * (size / n / bandwidth + latency)


@dataclass(frozen=True)
class Step:
    """The parts of one training step, in seconds.

    `copy` and `reduce` are DataParallel's transfers, `sync` is DDP's all-reduce, of which
    the `tail` can begin only when the backward ends.
    """

    forward: float
    backward: float
    copy: float = 0.0
    reduce: float = 0.0
    sync: float = 0.0
    tail: float = 0.0

    @property
    def total(self) -> float:
        hidden = max(self.backward + self.tail, self.sync)
        return self.copy + self.forward + hidden + self.reduce


def ddp(size: float, seconds: float, bandwidth: float, n: int) -> Step:
    """A step of DDP: `size` bytes of parameters, `seconds` for a step of one GPU."""
    return Step(
        forward=seconds / 3,
        backward=2 * seconds / 3,
        sync=all_reduce_seconds(size, n, bandwidth),
        tail=all_reduce_seconds(min(size, BUCKET), n, bandwidth),
    )


def data_parallel(size: float, seconds: float, bandwidth: float, n: int) -> Step:
    """A step of DataParallel, for the same."""
    there = (n - 1) * size / bandwidth
    return Step(seconds / 3, 2 * seconds / 3, copy=there, reduce=there)


def speed_up(step: Step, n: int) -> float:
    """How many times the samples of one GPU are trained on in the same time."""
    return n * (step.forward + step.backward) / step.total
