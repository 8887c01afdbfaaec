"""Kernels of the family `rnn` for CPUs."""
