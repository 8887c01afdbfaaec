"""Passes that turn one dialect into the next, and the lowerings of each family."""
