"""Loops through the network API (tensorrt-features.md#1.18, 1.20, 1.29, 1.41, section 7), by NumPy and on the CPU."""

from __future__ import annotations

import numpy as np
import pytest
from layer_networks import CollectingLogger, constant, evaluate, new_network

import mlirt as trt
from mlirt.errors import InvalidModelError, MlirtError

SUM, LESS = trt.ElementWiseOperation.SUM, trt.ElementWiseOperation.LESS
X = np.arange(6, dtype=np.float32).reshape(3, 2)


def running_sum(
    network: trt.INetworkDefinition, x: trt.ITensor, limit: trt.ITensor, reverse: bool = False
) -> tuple[trt.ILoop, trt.IRecurrenceLayer, trt.ITensor]:
    """A loop that adds the rows of x."""
    loop = network.add_loop()
    loop.add_trip_limit(limit, trt.TripLimit.COUNT)
    row = loop.add_iterator(x, 0, reverse).get_output(0)
    total = loop.add_recurrence(constant(network, np.zeros(2, np.float32)))
    after = network.add_elementwise(total.get_output(0), row, SUM).get_output(0)
    total.set_input(1, after)
    return loop, total, after


def counting(kind: trt.LoopOutput, count: int, length: int | None = None, reverse: bool = False) -> np.ndarray:
    """What is seen of the running sum."""
    network = new_network()
    x, limit = network.add_input("x", trt.float32, (3, 2)), network.add_input("n", trt.int32, ())
    loop, total, after = running_sum(network, x, limit, reverse)
    output = loop.add_loop_output(total.get_output(0) if length is None else after, kind, 0)
    if length is not None:
        output.set_input(1, constant(network, np.array(length, np.int32)))
    network.mark_output(output.get_output(0))
    return evaluate(network, {"x": X, "n": np.array(count, np.int32)})[0]


@pytest.mark.parametrize("count", [0, 1, 3])
def test_last_value_of_a_counted_loop(count: int) -> None:
    """tensorrt-features.md#7.2, 7.7, 7.8: the initial value where there is no iteration."""
    np.testing.assert_array_equal(counting(trt.LoopOutput.LAST_VALUE, count), X[:count].sum(0))


def test_values_of_all_iterations() -> None:
    """tensorrt-features.md#7.6, 7.9, 7.10."""
    np.testing.assert_array_equal(counting(trt.LoopOutput.CONCATENATE, 3, 3), X.cumsum(0))
    np.testing.assert_array_equal(counting(trt.LoopOutput.REVERSE, 3, 3), X.cumsum(0)[::-1])
    np.testing.assert_array_equal(counting(trt.LoopOutput.CONCATENATE, 3, 3, reverse=True), X[::-1].cumsum(0))
    np.testing.assert_array_equal(counting(trt.LoopOutput.CONCATENATE, 2, 3)[2], [0, 0])
    with pytest.raises(MlirtError):
        counting(trt.LoopOutput.CONCATENATE, 3, 2)


def test_while_ends_at_the_least_iteration() -> None:
    """tensorrt-features.md#7.3, 7.4: doubling while the value is below 20, at most so often."""
    for most, expected in ((100, 32.0), (2, 4.0)):
        network = new_network()
        loop = network.add_loop()
        value = loop.add_recurrence(constant(network, np.array(1, np.float32)))
        before = value.get_output(0)
        value.set_input(1, network.add_elementwise(before, before, SUM).get_output(0))
        below = network.add_elementwise(before, constant(network, np.array(20, np.float32)), LESS)
        loop.add_trip_limit(below.get_output(0), trt.TripLimit.WHILE)
        loop.add_trip_limit(constant(network, np.array(most, np.int32)), trt.TripLimit.COUNT)
        network.mark_output(loop.add_loop_output(before, trt.LoopOutput.LAST_VALUE).get_output(0))
        assert evaluate(network, {})[0] == expected


def test_attributes() -> None:
    """tensorrt-features.md#7.1."""
    logger = CollectingLogger()
    network = new_network(logger)
    x, limit = network.add_input("x", trt.float32, (3, 2)), network.add_input("n", trt.int32, ())
    loop, total, _ = running_sum(network, x, limit)
    loop.name = "sum"
    assert total.loop is loop
    layers = [layer.type for layer in network][:2]
    assert layers == [trt.LayerType.TRIP_LIMIT, trt.LayerType.ITERATOR]
    assert loop.add_trip_limit(limit, trt.TripLimit.COUNT) is None
    assert "sum: the loop has a trip limit COUNT already" in logger.text()


def test_what_a_loop_needs() -> None:
    """tensorrt-features.md#7.3, 7.5, 7.7, 7.8."""
    network = new_network()
    loop = network.add_loop()
    value = loop.add_recurrence(constant(network, np.array(1, np.float32)))
    output = loop.add_loop_output(value.get_output(0), trt.LoopOutput.LAST_VALUE)
    network.mark_output(output.get_output(0))
    with pytest.raises(InvalidModelError, match=r"Recurrence\]: a recurrence needs its second input"):
        evaluate(network, {})
    value.set_input(1, value.get_output(0))
    with pytest.raises(MlirtError, match="limit"):
        evaluate(network, {})
    wrong = loop.add_trip_limit(constant(network, np.array(1, np.int32)), trt.TripLimit.WHILE)
    wrong.name = "until"
    with pytest.raises(InvalidModelError, match=r"until: .*TripLimit::kWHILE requires Bool input"):
        evaluate(network, {})


def test_last_value_is_of_a_recurrence() -> None:
    """tensorrt-features.md#7.8."""
    network = new_network()
    x, limit = network.add_input("x", trt.float32, (3, 2)), network.add_input("n", trt.int32, ())
    loop, _, after = running_sum(network, x, limit)
    network.mark_output(loop.add_loop_output(after, trt.LoopOutput.LAST_VALUE).get_output(0))
    with pytest.raises(InvalidModelError, match="kLAST_VALUE must be output from an IRecurrenceLayer"):
        evaluate(network, {"x": X, "n": np.array(1, np.int32)})
