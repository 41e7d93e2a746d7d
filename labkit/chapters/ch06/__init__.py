"""Chapter 06: several processes and several GPUs."""
