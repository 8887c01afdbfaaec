"""Tactics for `fused.window`."""
