"""The explorers of chapter 02, tensors, in the page's order."""

from labkit.chapters.ch02 import explorers_21, explorers_22

EXPLORERS = [*explorers_21.EXPLORERS, *explorers_22.EXPLORERS]
