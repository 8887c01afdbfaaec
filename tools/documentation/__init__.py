"""Writes the documents that follow from definitions, and brings the examples in the others up to date (`make docs`)."""
