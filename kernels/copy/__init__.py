"""Tactics for the ops that move elements and compute nothing."""
