"""The explorers of part 7.3."""

from labkit.lesson.explore import Explorer

EXPLORERS: list[Explorer] = []
