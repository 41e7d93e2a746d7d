"""The explorers of chapter 03, autograd, in the page's order."""

from labkit.chapters.ch03 import explorers_31, explorers_32

EXPLORERS = [*explorers_31.EXPLORERS, *explorers_32.EXPLORERS]
