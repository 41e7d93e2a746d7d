"""Chapter 05: training."""
