"""The traps and claims of chapter 02, tensors, in the page's order."""

from labkit.chapters.ch02 import traps_21, traps_22, traps_23

TRAPS = [*traps_21.TRAPS, *traps_22.TRAPS, *traps_23.TRAPS]
CLAIMS = [*traps_21.CLAIMS, *traps_22.CLAIMS, *traps_23.CLAIMS]
