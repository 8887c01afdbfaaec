"""Shuffle, slice, concatenation, padding and shape through the network API (tensorrt-features.md#1.3, 1.24, 1.36 to
1.38c).
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest
from layer_networks import constant, new_network, output_of

import mlirt as trt
from mlirt.errors import InvalidModelError

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def network_with_x() -> tuple[trt.INetworkDefinition, trt.ITensor]:
    network = new_network()
    return network, network.add_input("x", trt.float32, X.shape)


def test_shuffle() -> None:
    """tensorrt-features.md#1.37a."""
    network, x = network_with_x()
    layer = network.add_shuffle(x)
    assert (layer.first_transpose, layer.reshape_dims, layer.zero_is_placeholder) == (tuple(range(8)), None, True)
    layer.first_transpose = layer.first_transpose
    assert layer.get_output(0).shape == (2, 3, 4)
    layer.first_transpose = (0, 2, 1)
    layer.reshape_dims = (0, -1)
    layer.second_transpose = trt.Permutation([1, 0])
    assert layer.get_output(0).shape == (12, 2)
    np.testing.assert_array_equal(output_of(network, layer, {"x": X}), X.transpose(0, 2, 1).reshape(2, 12).T)


def test_shuffle_by_a_shape() -> None:
    """tensorrt-features.md#1.37b."""
    network, x = network_with_x()
    layer = network.add_shuffle(x)
    layer.reshape_dims = (24,)
    layer.set_input(1, constant(network, np.array([4, 0, 2], np.int32)))
    np.testing.assert_array_equal(output_of(network, layer, {"x": X}), X.reshape(4, 3, 2))
    assert layer.get_input(1) is not None
    assert layer.get_input(1).is_shape_tensor  # pyright: ignore[reportOptionalMemberAccess]  (asserted above)


def test_shuffle_of_a_shape_that_the_run_decides() -> None:
    """tensorrt-features.md#1.37b, 6.2: a tensor is a shape as soon as one is computed with it."""
    network = new_network()
    x = network.add_input("x", trt.float32, (-1, 4))
    shape = network.add_shape(x).get_output(0)
    half = network.add_elementwise(
        shape, constant(network, np.array([2, 2], np.int32)), trt.ElementWiseOperation.FLOOR_DIV
    ).get_output(0)
    assert not half.is_shape_tensor
    joined = network.add_concatenation([half, constant(network, np.array([-1], np.int32))]).get_output(0)
    layer = network.add_shuffle(x)
    layer.set_input(1, joined)
    assert half.is_shape_tensor
    assert shape.is_shape_tensor
    assert not x.is_shape_tensor
    assert layer.get_output(0).shape == (-1, 2, -1)
    array = np.arange(24, dtype=np.float32).reshape(6, 4)
    np.testing.assert_array_equal(output_of(network, layer, {"x": array}), array.reshape(3, 2, 4))


def test_minus_one_without_a_solution() -> None:
    """tensorrt-features.md#1.37c."""
    network = new_network()
    layer = network.add_shuffle(network.add_input("x", trt.float32, (0, 3)))
    layer.reshape_dims = (-1, 0)
    layer.zero_is_placeholder = False
    with pytest.raises(InvalidModelError, match="undetermined"):
        output_of(network, layer, {})


def test_slice() -> None:
    """tensorrt-features.md#1.38a."""
    network, x = network_with_x()
    layer = network.add_slice(x, (1, 2, 0), (1, 2, 2), (1, -2, 3))
    assert (layer.start, layer.shape, layer.stride) == ((1, 2, 0), (1, 2, 2), (1, -2, 3))
    np.testing.assert_array_equal(output_of(network, layer, {"x": X}), X[1:, 2::-2, ::3])


def test_slice_by_tensors_that_fills() -> None:
    """tensorrt-features.md#1.38a, 1.38b."""
    network, x = network_with_x()
    layer = network.add_slice(x, (0, 0, 0), (2, 3, 6), (1, 1, 1))
    layer.set_input(1, constant(network, np.array([0, 0, -1], np.int32)))
    layer.set_input(4, constant(network, np.array(7, np.float32)))
    layer.mode = trt.SampleMode.FILL
    expected = np.pad(X, ((0, 0), (0, 0), (1, 1)), constant_values=7)
    np.testing.assert_array_equal(output_of(network, layer, {"x": X}), expected)


@pytest.mark.parametrize(("mode", "pad"), [("WRAP", "wrap"), ("CLAMP", "edge"), ("REFLECT", "reflect")])
def test_slice_modes(mode: str, pad: Literal["wrap", "edge", "reflect"]) -> None:
    """tensorrt-features.md#1.38b."""
    network, x = network_with_x()
    layer = network.add_slice(x, (0, 0, -2), (2, 3, 8), (1, 1, 1))
    layer.mode = trt.SliceMode[mode]
    expected = np.pad(X, ((0, 0), (0, 0), (2, 2)), mode=pad)
    np.testing.assert_array_equal(output_of(network, layer, {"x": X}), expected)


def test_slice_out_of_bounds() -> None:
    """tensorrt-features.md#1.38c."""
    network, x = network_with_x()
    layer = network.add_slice(x, (0, 0, 3), (2, 3, 2), (1, 1, 1))
    with pytest.raises(InvalidModelError, match="out of bounds slice"):
        output_of(network, layer, {})


def test_concatenation() -> None:
    """tensorrt-features.md#1.3: the axis is the third from the last unless it is set; parts may be empty."""
    network, x = network_with_x()
    layer = network.add_concatenation([x, network.add_input("e", trt.float32, (0, 3, 4))])
    assert layer.axis == 0
    layer.set_input(2, x)
    empty = np.empty((0, 3, 4), np.float32)
    np.testing.assert_array_equal(output_of(network, layer, {"x": X, "e": empty}), np.concatenate([X, X]))
    layer.axis = 1
    with pytest.raises(InvalidModelError, match="Concatenation"):
        output_of(network, layer, {"x": X, "e": empty})


def test_padding() -> None:
    """tensorrt-features.md#1.24: two innermost dimensions; negative numbers crop."""
    network, x = network_with_x()
    layer = network.add_padding_nd(x, (1, -1), (0, 2))
    expected = np.pad(X, ((0, 0), (1, 0), (0, 2)))[:, :, 1:]
    np.testing.assert_array_equal(output_of(network, layer, {"x": X}), expected)


def test_shape() -> None:
    """tensorrt-features.md#1.36: Int32."""
    network, x = network_with_x()
    layer = network.add_shape(x)
    assert layer.get_output(0).dtype is trt.int32
    np.testing.assert_array_equal(output_of(network, layer, {"x": X}), [2, 3, 4])
