"""Passes that make a network simpler without changing what it is made of."""
