"""The explorers of part 7.2."""

from labkit.lesson.explore import Explorer

EXPLORERS: list[Explorer] = []
