"""Passes that choose the number formats in which a network computes."""
