"""What networks become on their way to kernels, kept by digest, and what has changed of it."""
