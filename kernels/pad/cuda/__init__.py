"""Kernels of the family `pad` for GPUs."""
