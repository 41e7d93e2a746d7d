"""The traps and claims of chapter 04, the data pipeline.

In the page's order.
"""

from labkit.chapters.ch04 import traps_41, traps_42, traps_43

TRAPS = [*traps_41.TRAPS, *traps_42.TRAPS, *traps_43.TRAPS]
CLAIMS = [*traps_41.CLAIMS, *traps_42.CLAIMS, *traps_43.CLAIMS]
