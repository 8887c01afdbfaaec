"""Kernels of the family `rnn` for GPUs."""
