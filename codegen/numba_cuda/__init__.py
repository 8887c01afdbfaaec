"""Writes kernels for NVIDIA GPUs as Python source for numba-cuda."""
