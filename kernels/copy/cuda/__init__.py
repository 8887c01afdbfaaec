"""Kernels of the family `copy` for GPUs."""
