"""Kernels of the family `pointwise` for GPUs."""
