"""The exercises of part 7.3."""

from labkit.lesson.exercise import Exercise

EXERCISES: list[Exercise] = []
