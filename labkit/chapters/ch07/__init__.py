"""Chapter 07: saving and loading."""
