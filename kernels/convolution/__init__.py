"""Tactics for `fused.convolution`."""
