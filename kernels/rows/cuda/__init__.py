"""Kernels of the family `rows` for GPUs."""
