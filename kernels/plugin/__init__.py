"""Tactics for `fused.plugin`."""
