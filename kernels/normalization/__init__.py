"""Tactics for `fused.normalization`."""
