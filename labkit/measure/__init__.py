"""What is measured: time and memory."""
