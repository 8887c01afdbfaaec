"""Passes that decide where each buffer lives and for how long."""
