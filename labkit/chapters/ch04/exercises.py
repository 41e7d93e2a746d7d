"""The exercises of chapter 04, the data pipeline.

In the page's order.
"""

from labkit.chapters.ch04 import exercises_41, exercises_42, exercises_43

EXERCISES = [*exercises_41.EXERCISES, *exercises_42.EXERCISES, *exercises_43.EXERCISES]
