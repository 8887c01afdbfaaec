"""An engine in int8 computes what integer arithmetic in NumPy computes, to the bit."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view
from onnx import numpy_helper
from onnx_models import Array
from two_convolutions import network, samples

import mlirt
from mlirt.builder.calibration.batches import batches_of
from mlirt.errors import InvalidInputError
from mlirt.passes.quantization.weight_rounding import rounded_weights
from mlirt.runtime.engine_interface import TensorDescription

RANGES = {"x": 4.0, "/conv1/out_0": 20.0, "relu_1": 20.0, "y": 150.0}


def rounded(ratio: Array) -> Array:
    """tensorrt-features.md#9.1: half to even, saturated."""
    return np.clip(np.rint(ratio), -128, 127).astype(np.int32)


def test_activations_are_rounded_half_to_even() -> None:
    assert rounded(np.array([0.5, 1.5, -0.5, -2.5, 200.0, -200.0])).tolist() == [0, 2, 0, -2, 127, -128]


def test_sums_of_int8_with_one_factor() -> None:
    """tensorrt-features.md#9.26, 9.27: exact sums, times one factor for each channel, rectified and rounded."""
    weights = {one.name: numpy_helper.to_array(one) for one in network().graph.initializer}
    (w1, s1), (w2, s2) = (rounded_weights(weights[name], 0) for name in ("w1", "w2"))
    scales = {name: np.float32(range_ / 127) for name, range_ in RANGES.items()}
    bytes_in = rounded(samples() / scales["x"])
    windows = sliding_window_view(np.pad(bytes_in, ((0, 0), (0, 0), (1, 1), (1, 1))), (3, 3), axis=(2, 3))
    sums = np.einsum("nchwrs,kcrs->nkhw", windows, w1.astype(np.int32), dtype=np.int64)
    factors = (scales["x"] * s1) / scales["relu_1"]
    between = np.maximum(rounded(sums.astype(np.float32) * factors.reshape(-1, 1, 1)), 0)
    last = np.einsum("nchw,kc->nkhw", between, w2[:, :, 0, 0].astype(np.int32), dtype=np.int64)
    expected = last.astype(np.float32) * (scales["relu_1"] * s2).reshape(-1, 1, 1)
    found = mlirt.compile(network(), "cpu", "int8", dynamic_ranges=RANGES).run({"x": samples()})["y"]
    np.testing.assert_array_equal(found, expected)


def test_samples_for_integers_may_be_float32() -> None:
    """tensorrt-features.md#9.19."""
    inputs = [TensorDescription("x", "int8", (1, 2))]
    (batch,) = batches_of(np.array([[-128.0, 127.0]], np.float32), inputs).feeds
    assert batch["x"].tolist() == [[-128, 127]]
    assert batch["x"].dtype == np.int8
    with pytest.raises(InvalidInputError, match=r"batch 0: input 'x' has values outside of \[-128, 127\]"):
        list(batches_of(np.array([[0.0, 128.0]], np.float32), inputs).feeds)
