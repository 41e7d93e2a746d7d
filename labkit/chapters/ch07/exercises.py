"""The exercises of chapter 07, saving and loading, in the page's order."""

from labkit.chapters.ch07 import exercises_71, exercises_72, exercises_73

EXERCISES = [
    *exercises_71.EXERCISES,
    *exercises_72.EXERCISES,
    *exercises_73.EXERCISES,
]
