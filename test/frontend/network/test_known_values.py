"""What follows from constants and lengths is known where a layer needs a shape (tensorrt-features.md#6.2, 6.7)."""

from __future__ import annotations

import numpy as np
from layer_networks import constant, new_network

import mlirt as trt


def reshaped(length: int) -> trt.Dims:
    """The shape of x after a reshape to half of its rows, twice its columns."""
    network = new_network()
    x = network.add_input("x", trt.float32, (length, 4))
    shape = network.add_shape(x).get_output(0)
    rows = network.add_gather(shape, constant(network, np.array([0], np.int32)), 0).get_output(0)
    half = network.add_elementwise(
        rows, constant(network, np.array([2], np.int32)), trt.ElementWiseOperation.FLOOR_DIV
    ).get_output(0)
    layer = network.add_shuffle(x)
    wanted = network.add_concatenation([half, constant(network, np.array([8], np.int32))])
    layer.set_input(1, wanted.get_output(0))
    return layer.get_output(0).shape


def test_shape_arithmetic_is_followed() -> None:
    assert reshaped(6) == (3, 8)


def test_shape_of_the_run_stays_open() -> None:
    assert reshaped(-1) == (-1, 8)
