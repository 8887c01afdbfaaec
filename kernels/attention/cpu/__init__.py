"""Kernels of the family `attention` for CPUs."""
