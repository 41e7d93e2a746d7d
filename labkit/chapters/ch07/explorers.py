"""The explorers of chapter 07, saving and loading, in the page's order."""

from labkit.chapters.ch07 import explorers_71, explorers_72, explorers_73

EXPLORERS = [
    *explorers_71.EXPLORERS,
    *explorers_72.EXPLORERS,
    *explorers_73.EXPLORERS,
]
