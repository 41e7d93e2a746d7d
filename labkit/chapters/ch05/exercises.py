"""The exercises of chapter 05, training, in the page's order."""

from labkit.chapters.ch05 import exercises_51, exercises_52, exercises_53

EXERCISES = [
    *exercises_51.EXERCISES,
    *exercises_52.EXERCISES,
    *exercises_53.EXERCISES,
]
