"""Tactics for `fused.matmul`."""
