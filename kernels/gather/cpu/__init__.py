"""Kernels of the family `gather` for CPUs."""
