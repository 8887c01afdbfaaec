"""Tactics for the ops that combine the elements of rows."""
