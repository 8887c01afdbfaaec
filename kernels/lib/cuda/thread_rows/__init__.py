"""Threads that have neighbouring results of a row: what they read once for all of them, and how they store them."""
