"""Kernels of the family `matmul` for CPUs."""
