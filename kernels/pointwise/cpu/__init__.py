"""Kernels of the family `pointwise` for CPUs."""
