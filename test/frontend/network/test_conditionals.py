"""Conditionals through the network API (tensorrt-features.md#1.15 to 1.17, section 8), by NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from layer_networks import CollectingLogger, evaluate, new_network

import mlirt as trt
from mlirt.errors import InvalidModelError, MlirtError

SUM, PROD = trt.ElementWiseOperation.SUM, trt.ElementWiseOperation.PROD


def sum_or_product(logger: trt.ILogger | None = None) -> tuple[trt.INetworkDefinition, trt.IIfConditional]:
    """x + y where the condition holds, else x * y."""
    network = new_network(logger or CollectingLogger())
    condition = network.add_input("condition", trt.bool, ())
    x, y = (network.add_input(name, trt.float32, (2,)) for name in "xy")
    choice = network.add_if_conditional()
    choice.set_condition(condition)
    left, right = (choice.add_input(one).get_output(0) for one in (x, y))
    results = [network.add_elementwise(left, right, op).get_output(0) for op in (SUM, PROD)]
    network.mark_output(choice.add_output(*results).get_output(0))
    return network, choice


@pytest.mark.parametrize(("condition", "expected"), [(True, [4, 6]), (False, [3, 8])])
def test_either_branch(condition: bool, expected: list[float]) -> None:
    """tensorrt-features.md#8.1, 8.6, 8.13."""
    network, _ = sum_or_product()
    feeds = {"condition": np.array(condition), "x": np.array([1, 2], np.float32), "y": np.array([3, 4], np.float32)}
    np.testing.assert_array_equal(evaluate(network, feeds)[0], expected)


def test_attributes() -> None:
    """tensorrt-features.md#8.10."""
    logger = CollectingLogger()
    network, choice = sum_or_product(logger)
    kinds = [layer.type for layer in network]
    assert kinds[0] is trt.LayerType.CONDITION
    assert kinds[-1] is trt.LayerType.CONDITIONAL_OUTPUT
    last = network[-1]
    last.__class__ = trt.IIfConditionalOutputLayer
    assert isinstance(last, trt.IIfConditionalBoundaryLayer)
    assert last.conditional is choice
    choice.name = "choice"
    assert choice.set_condition(network.get_input(0)) is None
    assert "choice: the conditional has a condition already" in logger.text()


def test_condition_is_one_boolean() -> None:
    """tensorrt-features.md#1.4, 8.2."""
    network = new_network()
    choice = network.add_if_conditional()
    choice.set_condition(network.add_input("c", trt.int32, ()))
    x = network.add_input("x", trt.float32, (2,))
    network.mark_output(choice.add_output(x, x).get_output(0))
    with pytest.raises(InvalidModelError, match=r"Condition\]: C1: the condition is a 0-D Bool tensor"):
        evaluate(network, {})


def test_condition_must_be_set() -> None:
    """tensorrt-features.md#8.1."""
    network = new_network()
    choice = network.add_if_conditional()
    x = network.add_input("x", trt.float32, (2,))
    network.mark_output(choice.add_output(choice.add_input(x).get_output(0), x).get_output(0))
    with pytest.raises(MlirtError, match="condition"):
        evaluate(network, {"x": np.zeros(2, np.float32)})
