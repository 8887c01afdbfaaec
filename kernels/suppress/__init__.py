"""Tactics for `fused.suppress`."""
