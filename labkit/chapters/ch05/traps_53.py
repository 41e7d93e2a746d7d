"""The traps of part 5.3."""

from labkit.lesson.trap import Trap
from labkit.lesson.verdict import Claim

TRAPS: list[Trap] = []
CLAIMS: list[Claim] = []
