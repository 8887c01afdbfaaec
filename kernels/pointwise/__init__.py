"""Tactics for `fused.pointwise`."""
