"""What kernels are written with; no family of kernels, and no pass."""
