"""Chapter 00 has no explorer."""

from labkit.lesson.explore import Explorer

EXPLORERS: list[Explorer] = []
