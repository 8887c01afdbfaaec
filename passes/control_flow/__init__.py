"""Passes that turn the borders of loops and conditionals into regions, and optimise branches and loops."""
