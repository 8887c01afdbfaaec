"""What kernels of GPUs are made of."""
