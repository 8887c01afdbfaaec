"""Passes that turn fused ops into kernels and launches, and map their loops to workers, blocks and threads.

The kernels themselves are in `kernels/`: `convert-fused-to-kernel` asks the tactics there.
"""
