"""The exercises of part 3.3: a logarithm with a mask, a GAN step, three cuts."""

from labkit.chapters.ch03 import gan_step, safe_log, three_cuts

EXERCISES = [safe_log.EXERCISE, gan_step.EXERCISE, three_cuts.EXERCISE]
