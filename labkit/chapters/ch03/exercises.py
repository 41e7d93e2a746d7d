"""The exercises of chapter 03, autograd, in the page's order."""

from labkit.chapters.ch03 import exercises_32, exercises_33

EXERCISES = [*exercises_32.EXERCISES, *exercises_33.EXERCISES]
