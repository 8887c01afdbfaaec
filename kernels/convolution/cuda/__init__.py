"""Kernels of the family `convolution` for GPUs."""
