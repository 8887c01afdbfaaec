"""Resize and grid sample through the network API (tensorrt-features.md#1.31, 1.43)."""

from __future__ import annotations

import numpy as np
import pytest
from layer_networks import constant, evaluate, new_network, output_of

import mlirt as trt
from mlirt.errors import InvalidModelError

X = np.arange(8, dtype=np.float32).reshape(1, 1, 2, 4)


def resize() -> tuple[trt.INetworkDefinition, trt.IResizeLayer]:
    network = new_network()
    return network, network.add_resize(network.add_input("x", trt.float32, X.shape))


def test_resize_by_shape_scales_or_tensor() -> None:
    """tensorrt-features.md#1.31a."""
    expected = X.repeat(2, 2).repeat(2, 3)
    network, layer = resize()
    layer.shape = (1, 1, 4, 8)
    np.testing.assert_array_equal(output_of(network, layer, {"x": X}), expected)
    network, layer = resize()
    layer.scales = [1, 1, 2, 2]
    np.testing.assert_array_equal(output_of(network, layer, {"x": X}), expected)
    network, layer = resize()
    layer.set_input(1, constant(network, np.array([1, 1, 4, 8], np.int32)))
    np.testing.assert_array_equal(output_of(network, layer, {"x": X}), expected)


def test_resize_without_a_size() -> None:
    """tensorrt-features.md#1.31a: it stays as large as it is."""
    network, layer = resize()
    np.testing.assert_array_equal(output_of(network, layer, {"x": X}), X)


def test_each_mode_has_its_axes() -> None:
    """tensorrt-features.md#1.31b."""
    network, layer = resize()
    layer.resize_mode, layer.shape = trt.InterpolationMode.CUBIC, (1, 2, 4, 8)
    with pytest.raises(InvalidModelError, match="CUBIC resizes the 2 innermost dimensions at most"):
        output_of(network, layer, {"x": X})


def test_linear_samples() -> None:
    """tensorrt-features.md#1.31c."""
    network, layer = resize()
    layer.resize_mode, layer.shape = trt.ResizeMode.LINEAR, (1, 1, 2, 7)
    layer.coordinate_transformation = trt.ResizeCoordinateTransformation.ALIGN_CORNERS
    found = output_of(network, layer, {"x": X})
    np.testing.assert_allclose(found[0, 0], np.stack([np.linspace(0, 3, 7), np.linspace(4, 7, 7)]), rtol=1e-6)
    layer.coordinate_transformation = trt.ResizeCoordinateTransformation.HALF_PIXEL
    layer.resize_mode, layer.nearest_rounding = trt.ResizeMode.NEAREST, trt.ResizeRoundMode.CEIL
    assert layer.nearest_rounding is trt.ResizeRoundMode.CEIL
    assert evaluate(network, {"x": X})[0].shape == (1, 1, 2, 7)


def test_grid_sample() -> None:
    """tensorrt-features.md#1.43: the corners of the image by aligned corners."""
    network = new_network()
    grid = np.array([[-1, -1], [1, -1], [-1, 1], [1, 1]], np.float32).reshape(1, 2, 2, 2)
    layer = network.add_grid_sample(network.add_input("x", trt.float32, X.shape), constant(network, grid))
    layer.align_corners, layer.sample_mode = True, trt.SampleMode.CLAMP
    np.testing.assert_allclose(output_of(network, layer, {"x": X})[0, 0], [[0, 3], [4, 7]], atol=1e-6)
