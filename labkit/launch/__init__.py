"""Processes and modules that a page starts."""
