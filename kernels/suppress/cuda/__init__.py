"""Kernels of the family `suppress` for GPUs."""
