"""Instruments against their peers, side by side in one run."""
