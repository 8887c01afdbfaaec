"""Tactics for `fused.scatter`."""
