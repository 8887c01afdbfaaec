"""Tactics for `fused.arg_reduction`."""
