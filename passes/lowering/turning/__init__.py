"""Copies and pointwise kernels whose operands lie across the result: they are turned around in shared memory."""
