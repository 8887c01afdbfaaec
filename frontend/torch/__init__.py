"""Reads exported PyTorch programs into the `trt` dialect."""
