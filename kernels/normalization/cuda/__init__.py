"""Kernels of the family `normalization` for GPUs."""
