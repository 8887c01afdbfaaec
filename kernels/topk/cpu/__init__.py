"""Kernels of the family `topk` for CPUs."""
