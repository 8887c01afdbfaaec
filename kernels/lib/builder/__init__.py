"""Writes kernels op by op: their arguments, their blocks, arithmetic on indices."""
