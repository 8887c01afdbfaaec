"""Ragged softmax and assertions through the network API (tensorrt-features.md#1.2, 1.28)."""

from __future__ import annotations

import numpy as np
import pytest
from layer_networks import constant, evaluate, new_network, output_of

import mlirt as trt
from mlirt.errors import InvalidModelError, UnmetConditionError


def test_ragged_softmax() -> None:
    """tensorrt-features.md#1.28: a bound of 0 gives zeros, one that is too large counts as the length."""
    x = np.arange(12, dtype=np.float32).reshape(1, 3, 4)
    network = new_network()
    tensor = network.add_input("x", trt.float32, x.shape)
    layer = network.add_ragged_softmax(tensor, constant(network, np.array([2, 0, 9], np.int32).reshape(1, 3, 1)))
    expected = np.zeros((3, 4))
    expected[0, :2] = np.exp([0, 1]) / np.exp([0, 1]).sum()
    expected[2] = np.exp(range(4)) / np.exp(range(4)).sum()
    np.testing.assert_allclose(output_of(network, layer, {"x": x})[0], expected, rtol=1e-5)


def test_ragged_softmax_has_three_dimensions() -> None:
    network = new_network()
    two, three = (network.add_input(name, trt.float32, (2,) * rank) for name, rank in (("two", 2), ("three", 3)))
    with pytest.raises(InvalidModelError, match="Input tensor must have exactly 3 dimensions"):
        output_of(network, network.add_ragged_softmax(two, two), {})
    network = new_network()
    three = network.add_input("three", trt.float32, (2, 2, 2))
    bounds = constant(network, np.ones(2, np.int32))
    with pytest.raises(InvalidModelError, match=r"condition: input\.getDimensions"):
        output_of(network, network.add_ragged_softmax(three, bounds), {})


def test_assertion_of_the_run() -> None:
    """tensorrt-features.md#1.2b."""
    network = new_network()
    a, b = (network.add_input(name, trt.int32, (2,)) for name in "ab")
    same = network.add_elementwise(a, b, trt.ElementWiseOperation.EQUAL).get_output(0)
    layer = network.add_assertion(same, "a and b differ")
    assert (layer.message, layer.num_outputs) == ("a and b differ", 0)
    network.mark_output(network.add_identity(a).get_output(0))
    array = np.array([1, 2], np.int32)
    evaluate(network, {"a": array, "b": array})
    with pytest.raises(
        UnmetConditionError, match=r"condition\[1\] is false: \(EQUAL \(# 1 a\) \(# 1 b\)\)\. a and b differ"
    ):
        evaluate(network, {"a": array, "b": array + np.array([0, 1], np.int32)})


def test_assertion_that_is_known_to_fail() -> None:
    """tensorrt-features.md#1.2a."""
    network = new_network()
    flags = network.add_identity(constant(network, np.array([1, 0], np.int32)))
    flags.set_output_type(0, trt.bool)
    layer = network.add_assertion(flags.get_output(0), "told you so")
    layer.name = "check"
    x = network.add_input("x", trt.float32, (1,))
    network.mark_output(network.add_identity(x).get_output(0))
    with pytest.raises(InvalidModelError, match=r"IAssertionLayer check: condition\[1\] is false: 0. told you so"):
        evaluate(network, {"x": np.zeros(1, np.float32)})
