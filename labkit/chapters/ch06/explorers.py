"""The explorers of chapter 06, several processes and several GPUs.

In the page's order.
"""

from labkit.chapters.ch06 import explorers_61, explorers_62

EXPLORERS = [*explorers_61.EXPLORERS, *explorers_62.EXPLORERS]
