"""The explorers of chapter 04, the data pipeline.

In the page's order.
"""

from labkit.chapters.ch04 import explorers_42, explorers_43

EXPLORERS = [*explorers_42.EXPLORERS, *explorers_43.EXPLORERS]
