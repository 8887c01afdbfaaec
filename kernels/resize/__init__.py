"""Tactics for `fused.resize`."""
