"""Kernels of the family `window` for CPUs."""
