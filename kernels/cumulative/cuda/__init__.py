"""Kernels of the family `cumulative` for GPUs."""
