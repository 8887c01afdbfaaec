"""Tactics for `fused.gather`."""
