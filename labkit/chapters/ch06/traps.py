"""The traps and claims of chapter 06, several processes and several GPUs.

In the page's order.
"""

from labkit.chapters.ch06 import traps_61, traps_62, traps_63

TRAPS = [*traps_61.TRAPS, *traps_62.TRAPS, *traps_63.TRAPS]
CLAIMS = [*traps_61.CLAIMS, *traps_62.CLAIMS, *traps_63.CLAIMS]
