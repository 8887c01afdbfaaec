"""Passes that let quantised tensors meet layers that compute with their integers."""
