"""The claims of part 7.2, judged by measured values."""

from labkit.lesson.verdict import Claim

CLAIMS: list[Claim] = []
