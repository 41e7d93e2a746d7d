"""The traps of part 6.2, DistributedDataParallel."""

from labkit.chapters.ch06.claims_62 import CLAIMS
from labkit.chapters.ch06.traps_62_ranks import RANK_TRAPS
from labkit.chapters.ch06.traps_62_shares import SHARE_TRAPS
from labkit.lesson.trap import Trap

__all__ = ["CLAIMS", "TRAPS"]

TRAPS: list[Trap] = [*SHARE_TRAPS, *RANK_TRAPS]
