"""Kernels of the family `matmul` for GPUs."""
