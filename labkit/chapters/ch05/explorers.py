"""The explorers of chapter 05, training, in the page's order."""

from labkit.chapters.ch05 import explorers_52, explorers_53

EXPLORERS = [*explorers_52.EXPLORERS, *explorers_53.EXPLORERS]
