"""Reads the table of contents of a plan off a host program; runtime/manifest.py says what there is to write."""
