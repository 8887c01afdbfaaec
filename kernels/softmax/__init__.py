"""Tactics for `fused.softmax`."""
