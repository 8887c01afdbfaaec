"""The rules of canonicalize: one file for each family of layers."""
