"""Kernels of the family `convolution` for CPUs."""
