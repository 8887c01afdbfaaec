"""Passes that decide how each tensor lies in memory, and rewrite ops for it."""
