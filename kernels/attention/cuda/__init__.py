"""Kernels of the family `attention` for GPUs."""
