"""Part 6.1, DataParallel and how ranks are launched: claims, and no trap."""

from labkit.chapters.ch06.claims_61 import CLAIMS
from labkit.lesson.trap import Trap

__all__ = ["CLAIMS", "TRAPS"]

TRAPS: list[Trap] = []
