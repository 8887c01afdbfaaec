"""Tactics for `fused.rnn`."""
