"""The traps and claims of chapter 05, training, in the page's order."""

from labkit.chapters.ch05 import traps_51, traps_52, traps_53

TRAPS = [*traps_51.TRAPS, *traps_52.TRAPS, *traps_53.TRAPS]
CLAIMS = [*traps_51.CLAIMS, *traps_52.CLAIMS, *traps_53.CLAIMS]
