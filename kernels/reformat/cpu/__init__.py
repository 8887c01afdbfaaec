"""Kernels of the family `reformat` for CPUs."""
