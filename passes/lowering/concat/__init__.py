"""Tactics for `fused.concat`."""
