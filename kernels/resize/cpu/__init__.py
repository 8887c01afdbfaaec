"""Kernels of the family `resize` for CPUs."""
