"""The traps and claims of chapter 07, saving and loading, in the page's order."""

from labkit.chapters.ch07 import traps_71, traps_72, traps_73

TRAPS = [*traps_71.TRAPS, *traps_72.TRAPS, *traps_73.TRAPS]
CLAIMS = [*traps_71.CLAIMS, *traps_72.CLAIMS, *traps_73.CLAIMS]
