"""What kernels of CPUs are made of."""
