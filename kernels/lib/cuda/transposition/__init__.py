"""Copies and pointwise kernels whose operands lie across the result: they are transposed in shared memory."""
