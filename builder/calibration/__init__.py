"""Finds the scales of INT8 tensors from sample data: ranges, thresholds, the four calibrators, their cache file."""
