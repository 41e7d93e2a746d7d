"""Chapter 04: the data pipeline."""
