"""Tactics for copies between memory layouts."""
