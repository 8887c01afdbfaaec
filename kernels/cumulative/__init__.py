"""Tactics for `fused.cumulative`."""
