"""Layers of the user's own, written in Python: what network, compiler and runtime know of a plugin."""
