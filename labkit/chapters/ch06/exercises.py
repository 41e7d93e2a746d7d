"""The exercises of chapter 06, several processes and several GPUs.

In the page's order.
"""

from labkit.chapters.ch06 import exercises_62, exercises_63

EXERCISES = [*exercises_62.EXERCISES, *exercises_63.EXERCISES]
