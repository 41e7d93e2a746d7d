"""The traps and claims of chapter 03, autograd, in the page's order."""

from labkit.chapters.ch03 import traps_31, traps_32, traps_33

TRAPS = [*traps_31.TRAPS, *traps_32.TRAPS, *traps_33.TRAPS]
CLAIMS = [*traps_31.CLAIMS, *traps_32.CLAIMS, *traps_33.CLAIMS]
