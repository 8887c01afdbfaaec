"""Kernels of the family `resize` for GPUs."""
