"""Reads ONNX models; one file per op family, found by being in this folder."""
