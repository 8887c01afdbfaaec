"""Constants and fills through the network API (tensorrt-features.md#1.5, 1.11)."""

from __future__ import annotations

import numpy as np
import pytest
from layer_networks import constant, new_network, output_of

import mlirt as trt
from mlirt.errors import InvalidModelError


def test_constant_takes_a_shape_of_its_own() -> None:
    """tensorrt-features.md#1.5."""
    network = new_network()
    layer = network.add_constant((2, 3), np.arange(6, dtype=np.int32))
    np.testing.assert_array_equal(output_of(network, layer, {}), np.arange(6).reshape(2, 3))
    layer.shape = (4,)
    assert layer.weights.size == 6
    with pytest.raises(InvalidModelError, match="weights has count 6, but 4 was expected"):
        output_of(network, layer, {})


def test_constants_are_not_bool_and_have_eight_dimensions() -> None:
    network = new_network()
    with pytest.raises(InvalidModelError, match="constants are not Bool"):
        output_of(network, network.add_constant((1,), np.ones(1, np.bool_)), {})
    with pytest.raises(ValueError, match="at most 8"):
        network.add_constant((1,) * 9, np.ones(1, np.float32))


def test_fill_with_numbers() -> None:
    """tensorrt-features.md#1.11a: alpha and beta are numbers of a 1-D fill."""
    network = new_network()
    layer = network.add_fill((4,), trt.FillOperation.LINSPACE)
    layer.alpha, layer.beta = 1.0, 0.5
    np.testing.assert_array_equal(output_of(network, layer, {}), [1, 1.5, 2, 2.5])
    layer.shape = (2, 2)
    with pytest.raises(InvalidModelError, match="Alpha and beta tensor should be set when output an ND tensor"):
        output_of(network, layer, {})


def test_fill_with_tensors() -> None:
    """tensorrt-features.md#1.11a: input 0 is the shape, 1 alpha, 2 beta."""
    network = new_network()
    layer = network.add_fill((1, 1), trt.FillOperation.LINSPACE)
    for index, array in enumerate((np.array([2, 3], np.int32), np.array(1, np.float32), np.array([10, 2], np.float32))):
        layer.set_input(index, constant(network, array))
    np.testing.assert_array_equal(output_of(network, layer, {}), [[1, 3, 5], [11, 13, 15]])


@pytest.mark.parametrize(("kind", "mean", "deviation"), [("RANDOM_UNIFORM", 2.0, 1 / 3**0.5), ("RANDOM_NORMAL", 1, 3)])
def test_fill_with_random_numbers(kind: str, mean: float, deviation: float) -> None:
    """tensorrt-features.md#1.11b: between alpha and beta, or with their mean and deviation; the shape may come from a
    tensor.
    """
    network = new_network()
    layer = network.add_fill((100, 50), trt.FillOperation[kind])
    layer.alpha, layer.beta = 1.0, 3.0
    numbers = output_of(network, layer, {})
    assert (numbers.dtype, numbers.shape) == (np.float32, (100, 50))
    assert abs(numbers.mean() - mean) < 0.1
    assert abs(numbers.std() - deviation) < 0.1
    layer.set_input(0, constant(network, np.array([3, 4], np.int32)))
    assert output_of(network, layer, {}).shape == (3, 4)
