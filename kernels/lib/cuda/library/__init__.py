"""Launches of what a library of the GPU's maker computes: operands, epilogue and arguments as it takes them."""
