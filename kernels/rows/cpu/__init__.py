"""Kernels of the family `rows` for CPUs."""
