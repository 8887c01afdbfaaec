"""Weights hold an array without copying it (tensorrt-features.md#2.11)."""

from __future__ import annotations

import gc
import weakref

import numpy as np

import mlirt as trt


def test_weights_of_an_array() -> None:
    array = np.arange(6, dtype=np.float16).reshape(2, 3)
    weights = trt.Weights(array)
    assert (weights.size, len(weights), weights.nbytes, weights.dtype) == (6, 6, 12, trt.DataType.HALF)
    assert np.shares_memory(weights.numpy(), array)


def test_array_stays_alive() -> None:
    array = np.zeros(3, np.float32)
    seen = weakref.ref(array)
    weights = trt.Weights(array)
    del array
    gc.collect()
    assert seen() is weights.numpy()


def test_empty_weights() -> None:
    weights = trt.Weights(trt.DataType.INT8)
    assert (weights.size, weights.dtype) == (0, trt.DataType.INT8)
