"""Tactics for `fused.view`."""
