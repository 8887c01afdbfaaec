"""Canonicalization patterns: one file for each family of layers."""
