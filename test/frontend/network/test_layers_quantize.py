"""Quantize and dequantize through the network API (tensorrt-features.md#1.8, 1.27)."""

from __future__ import annotations

import numpy as np
import pytest
from layer_networks import constant, new_network, output_of

import mlirt as trt
from mlirt.errors import InvalidModelError

X = np.array([[0.5, 1.5, 2.5, -0.5], [300, -300, 7, 0]], np.float32)


def test_ties_go_to_even_and_the_ends_are_kept() -> None:
    network = new_network()
    x = network.add_input("x", trt.float32, X.shape)
    layer = network.add_quantize(x, constant(network, np.array(1, np.float32)))
    assert layer.get_output(0).dtype is trt.int8
    np.testing.assert_array_equal(output_of(network, layer, {"x": X}), [[0, 2, 2, 0], [127, -128, 7, 0]])


def test_one_scale_for_each_row() -> None:
    """tensorrt-features.md#1.8, 10.5: of weights; the run's numbers have one scale."""
    network = new_network()
    x = constant(network, X)
    scale = constant(network, np.array([0.5, 4], np.float32))
    codes = network.add_quantize(x, scale)
    with pytest.raises(InvalidModelError, match="unexpected negative axis"):
        output_of(network, codes, {})
    codes.axis = 0
    numbers = network.add_dequantize(codes.get_output(0), scale)
    numbers.axis = 0
    network.unmark_output(codes.get_output(0))
    expected = np.clip(np.rint(X / [[0.5], [4]]), -128, 127) * [[0.5], [4]]
    np.testing.assert_array_equal(output_of(network, numbers, {}), expected)


@pytest.mark.parametrize("scale", [0, -0.5, np.nan, np.inf, [0.5, -4]])
@pytest.mark.parametrize("kind", ["quantize", "dequantize"])
def test_scales_are_positive(kind: str, scale: float | list[float]) -> None:
    """tensorrt-features.md#1.8, 1.27: also a scale that little is computed for."""
    for computed in (False, True):
        network = new_network()
        x = network.add_input("x", trt.float32 if kind == "quantize" else trt.int8, X.shape)
        step = constant(network, np.array(scale, np.float32))
        step = network.add_identity(step).get_output(0) if computed else step
        layer = network.add_quantize(x, step) if kind == "quantize" else network.add_dequantize(x, step)
        layer.axis = 0
        with pytest.raises(InvalidModelError, match="expected scales greater than 0, but its scale holds"):
            output_of(network, layer, {"x": X})
