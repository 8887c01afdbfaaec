"""Tactics for `fused.pad`."""
