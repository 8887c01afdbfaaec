"""Weights as 8-bit integers in [-127, 127], with one scale for each output channel (tensorrt-features.md#9.2, 10.17).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


def rounded_weights(weights: Array, axis: int) -> tuple[Array, Array]:
    """The integers as int8, and the float32 scale of each index of `axis`: the largest magnitude there / 127.

    A tie is rounded up, as implicitly quantised weights are. Channels of zeros have scale 1.
    """
    import numpy as np

    others = tuple(k for k in range(weights.ndim) if k != axis)
    largest = np.abs(weights).max(axis=others, initial=0.0).astype(np.float32)
    scales = np.where(largest > 0, largest / np.float32(127), np.float32(1)).astype(np.float32)
    scales = np.where(scales > 0, scales, np.finfo(np.float32).smallest_subnormal)  # of numbers that a quotient loses
    shape = [-1 if k == axis else 1 for k in range(weights.ndim)]
    ratio = weights.astype(np.float64) / scales.astype(np.float64).reshape(shape)
    return np.clip(np.floor(ratio + 0.5), -127, 127).astype(np.int8), scales
