"""Gather, scatter, one-hot and non-zero through the network API (tensorrt-features.md#1.13, 1.34, 1.45, 1.46)."""

from __future__ import annotations

import numpy as np
from layer_networks import constant, new_network, output_of

import mlirt as trt

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def test_gather_slices() -> None:
    """tensorrt-features.md#1.13a, 1.13d: the index 9 is out of range and gives zeros."""
    network = new_network()
    indices = np.array([[0, 9], [2, 1]], np.int32)
    layer = network.add_gather(network.add_input("x", trt.float32, X.shape), constant(network, indices), 1)
    expected = np.take(X, np.where(indices < 3, indices, 0), 1)
    expected[:, 0, 1] = 0
    np.testing.assert_array_equal(output_of(network, layer, {"x": X}), expected)


def test_gather_slices_of_one_batch() -> None:
    """tensorrt-features.md#1.13a: [N,C,H,W] x [N,K] with one elementwise dimension is [N,K,H,W]."""
    network = new_network()
    x = network.add_input("x", trt.float32, (5, 3, 4, 4))
    layer = network.add_gather(x, network.add_input("i", trt.int32, (5, 2)), 1)
    assert layer.get_output(0).shape == (5, 5, 2, 4, 4)
    layer.num_elementwise_dims = 1
    assert layer.get_output(0).shape == (5, 2, 4, 4)


def test_gather_elements_and_coordinates() -> None:
    """tensorrt-features.md#1.13b, 1.13c."""
    network = new_network()
    x = network.add_input("x", trt.float32, X.shape)
    indices = np.array([[[2, 0, 1, 1]], [[0, 0, 2, 1]]], np.int32)
    elements = network.add_gather_v2(x, constant(network, indices), trt.GatherMode.ELEMENT)
    elements.axis = 1
    np.testing.assert_array_equal(output_of(network, elements, {"x": X}), np.take_along_axis(X, indices, 1))
    places = np.array([[0, 2], [1, 1]], np.int32)
    rows = network.add_gather_v2(x, constant(network, places), trt.GatherMode.ND)
    np.testing.assert_array_equal(output_of(network, rows, {"x": X}), X[[0, 1], [2, 1]])


def test_scatter() -> None:
    """tensorrt-features.md#1.34a, 1.34b."""
    network = new_network()
    x = network.add_input("x", trt.float32, X.shape)
    updates = constant(network, -np.ones((1, 1, 4), np.float32))
    one = network.add_scatter(x, constant(network, np.full((1, 1, 4), 2, np.int32)), updates, trt.ScatterMode.ELEMENT)
    one.axis = 1
    expected = X.copy()
    expected[0, 2] = -1
    np.testing.assert_array_equal(output_of(network, one, {"x": X}), expected)
    rows = constant(network, -np.ones((1, 4), np.float32))
    two = network.add_scatter(x, constant(network, np.array([[0, 2]], np.int32)), rows, trt.ScatterMode.ND)
    np.testing.assert_array_equal(output_of(network, two, {"x": X}), expected)


def test_one_hot() -> None:
    """tensorrt-features.md#1.46."""
    network = new_network()
    indices, values = constant(network, np.array([0, -1], np.int32)), constant(network, np.array([2, 5], np.float32))
    layer = network.add_one_hot(indices, values, constant(network, np.array(3, np.int32)), 1)
    np.testing.assert_array_equal(output_of(network, layer, {}), [[5, 2, 2], [2, 2, 5]])


def test_non_zero() -> None:
    """tensorrt-features.md#1.45: Int32, in the order of the rows."""
    network = new_network()
    layer = network.add_non_zero(network.add_input("x", trt.float32, (2, 3)))
    assert (layer.get_output(0).dtype, layer.get_output(0).shape) == (trt.int32, (2, -1))
    x = np.array([[0, 1, 0], [2, 0, 3]], np.float32)
    np.testing.assert_array_equal(output_of(network, layer, {"x": x}), np.stack(np.nonzero(x)))
