"""Kernels of the family `copy` for CPUs."""
