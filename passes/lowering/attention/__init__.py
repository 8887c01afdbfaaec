"""Tactics for `fused.attention`."""
