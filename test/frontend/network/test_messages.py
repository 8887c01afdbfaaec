"""What wrong networks are told (section 31 and others): the layer, what was expected, what came."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from layer_networks import CollectingLogger, constant, new_network

import mlirt as trt
from mlirt.dialects.context import RtContext
from mlirt.errors import InvalidModelError
from mlirt.frontend.network.module import network_module

IMAGE = (1, 3, 8, 8)
ONES = np.ones(1, np.float32)
Wrong = Callable[[trt.INetworkDefinition], trt.ILayer]


def image(network: trt.INetworkDefinition, shape: tuple[int, ...] = IMAGE) -> trt.ITensor:
    return network.add_input("x", trt.float32, shape)


def reshaped(network: trt.INetworkDefinition, dtype: trt.DataType, length: int) -> trt.ILayer:
    layer = network.add_shuffle(image(network))
    layer.set_input(1, network.add_input("shape", dtype, (length,)))
    return layer


WRONG: list[tuple[str, Wrong, str]] = [
    (
        "31.3 zero count",
        lambda net: net.add_convolution_nd(image(net), 4, (3, 3), trt.Weights()),
        "kernel weights has zero count, and input 1 gives no kernel",
    ),
    (
        "31.16 kernel",
        lambda net: net.add_convolution_nd(image(net), 4, (3, 3), np.ones(5, np.float32)),
        "kernel weights has count 5 but 36 ([4, 1, 3, 3]) was expected",
    ),
    (
        "31.3 bias",
        lambda net: net.add_convolution_nd(image(net), 4, (3, 3), np.ones(108, np.float32), np.ones(3, np.float32)),
        "bias weights has count 3 but 4 ([4]) was expected",
    ),
    (
        "31.5",
        lambda net: net.add_convolution_nd(image(net), 4, (3, 3), np.ones((4, 2, 3, 3), np.float32)),
        "channels of trt.convolution: expected 2, got 3",
    ),
    (
        "31.16 scale",
        lambda net: net.add_scale(image(net, (3, 8)), trt.ScaleMode.UNIFORM, ONES, ONES, ONES),
        "The input to the Scale Layer is required to have a minimum of 3 dimensions",
    ),
    (
        "31.16 mode",
        lambda net: net.add_scale(image(net), trt.ScaleMode.CHANNEL, np.ones(2, np.float32), ONES, ONES),
        "shift weights has count 2 but [3] was expected",
    ),
    ("1.47", lambda net: net.add_unary(image(net, (1 << 16, 1 << 16)), trt.UnaryOperation.EXP), "4294967296 elements"),
    ("12.22", lambda net: reshaped(net, trt.bool, 2), "must be a 1-D tensor of integers"),
    ("6.5", lambda net: reshaped(net, trt.int32, -1), "needs a constant length"),
]


@pytest.mark.parametrize(("row", "wrong", "why"), WRONG, ids=[row for row, *_ in WRONG])
def test_message(row: str, wrong: Wrong, why: str) -> None:
    network = new_network(CollectingLogger())
    layer = wrong(network)
    layer.name = "the_layer"
    network.mark_output(layer.get_output(0))
    with pytest.raises(InvalidModelError) as raised:
        network_module(network, RtContext())
    text = str(raised.value)
    assert text.startswith("the_layer: "), row
    assert why in text


def test_a_constant_may_be_a_shape_and_data() -> None:
    """tensorrt-features.md#6.3."""
    network = new_network()
    shape, plain = (constant(network, np.array([2, 3], np.int32)) for _ in range(2))
    layer = network.add_shuffle(network.add_input("x", trt.float32, (6,)))
    layer.set_input(1, shape)
    assert (shape.is_shape_tensor, shape.is_execution_tensor) == (True, False)
    assert (plain.is_shape_tensor, plain.is_execution_tensor) == (False, True)
    total = network.add_elementwise(shape, plain, trt.ElementWiseOperation.SUM).get_output(0)
    assert not shape.is_execution_tensor
    network.mark_output(total)
    assert (shape.is_shape_tensor, shape.is_execution_tensor) == (True, True)
