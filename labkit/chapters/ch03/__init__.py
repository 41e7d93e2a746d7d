"""Chapter 03: autograd."""
