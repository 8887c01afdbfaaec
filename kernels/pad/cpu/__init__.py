"""Kernels of the family `pad` for CPUs."""
