"""Writes the CHECK lines of tests in IR from what their RUN lines print."""
