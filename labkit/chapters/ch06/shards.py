"""Who reads which sample: shares as torch's DistributedSampler deals them out."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

from torch.utils.data import DistributedSampler


@dataclass(frozen=True)
class Shards:
    """The samples that each rank reads in one epoch, and those of epoch 0.

    `ranks[r][k]` is the sample that rank r reads as its number k.
    """

    samples: int
    ranks: tuple[tuple[int, ...], ...]
    first: tuple[tuple[int, ...], ...]

    @property
    def counts(self) -> dict[int, int]:
        """How often each sample is read by all ranks together, 0 included."""
        read = Counter(index for rank in self.ranks for index in rank)
        return {index: read[index] for index in range(self.samples)}

    @property
    def dropped(self) -> list[int]:
        return [index for index, count in self.counts.items() if count == 0]

    @property
    def repeated(self) -> dict[int, int]:
        """The samples that are read more than once, and how often."""
        return {index: count for index, count in self.counts.items() if count > 1}

    def is_padding(self, rank: int, place: int) -> bool:
        """Whether this read was added to fill up the last round."""
        return place * len(self.ranks) + rank >= self.samples


def deal(
    samples: int,
    world: int,
    epoch: int,
    shuffle: bool,
    drop_last: bool,
    told: bool,
) -> Shards:
    """The shares of `world` ranks in this epoch, from real samplers.

    `told` says whether `set_epoch` is called.  No process group is needed, since number
    and rank are given.

    >>> deal(5, 2, epoch=0, shuffle=False, drop_last=False, told=True).ranks
    ((0, 2, 4), (1, 3, 0))
    """

    def shares(epoch: int) -> tuple[tuple[int, ...], ...]:
        data: Any = range(samples)
        dealt = []
        for rank in range(world):
            sampler: DistributedSampler[int] = DistributedSampler(
                data, world, rank, shuffle=shuffle, drop_last=drop_last
            )
            if told:
                sampler.set_epoch(epoch)
            dealt.append(tuple(sampler))
        return tuple(dealt)

    return Shards(samples, shares(epoch), shares(0))
