"""Passes that place and remove changes of precision."""
