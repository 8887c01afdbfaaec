"""Passes that join layers which can run in one launch."""
