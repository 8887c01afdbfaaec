"""Tactics for `fused.reduction`."""
