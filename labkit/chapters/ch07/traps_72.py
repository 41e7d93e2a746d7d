"""The traps of part 7.2."""

from labkit.chapters.ch07.claims_72 import CLAIMS
from labkit.lesson.trap import Trap

__all__ = ["CLAIMS", "TRAPS"]

TRAPS: list[Trap] = []
