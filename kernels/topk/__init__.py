"""Tactics for `fused.topk`."""
