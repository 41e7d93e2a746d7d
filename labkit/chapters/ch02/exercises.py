"""The exercises of chapter 02, tensors, in the page's order."""

from labkit.chapters.ch02 import exercises_21, exercises_22, exercises_23

EXERCISES = [
    *exercises_21.EXERCISES,
    *exercises_22.EXERCISES,
    *exercises_23.EXERCISES,
]
