"""Chapter 06: several processes, several GPUs."""
