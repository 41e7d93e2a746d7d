"""The exercises of part 6.2."""

from labkit.chapters.ch06 import ddp_exercise, metric_exercise

EXERCISES = [metric_exercise.EXERCISE, ddp_exercise.EXERCISE]
