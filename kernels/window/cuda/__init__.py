"""Kernels of the family `window` for GPUs."""
