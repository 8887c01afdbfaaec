"""Shapes that only a run tells, through the network API (tensorrt-features.md#1.11, 1.31a, 1.37b to 1.38c, 1.45, 6.1,
6.6, 6.8).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

import numpy as np
import pytest
from layer_networks import Array, constant, new_network

import mlirt as trt
from mlirt.builder.build import build
from mlirt.builder.reference_engine import ReferenceEngine
from mlirt.dialects.context import RtContext
from mlirt.errors import InvalidInputError
from mlirt.frontend.network.module import network_module
from mlirt.passes.pipeline import run_passes
from mlirt.runtime.engine_interface import EngineLike

X = np.arange(12, dtype=np.float32).reshape(2, 6)


def engines(network: trt.INetworkDefinition, layer: trt.ILayer) -> list[EngineLike]:
    """NumPy and the CPU; the layer's output is `y`."""
    layer.get_output(0).name = "y"
    network.mark_output(layer.get_output(0))
    ctx = RtContext()
    module = network_module(network, ctx)
    compiled = build(module.clone(), ctx, "cpu")
    run_passes(module, ctx, "define-data-dependent-sizes,propagate-shapes")
    return [ReferenceEngine(module, ctx), compiled]


def check(runs: Sequence[EngineLike], feeds: Mapping[str, Array], expected: Array) -> None:
    for engine in runs:
        found = engine.run(feeds)["y"]
        assert found.shape == expected.shape
        np.testing.assert_array_equal(found, expected)


def ints(*values: int) -> Array:
    return np.array(values, np.int32)


def test_reshape() -> None:
    """tensorrt-features.md#1.37b and 1.37c: 0 copies, -1 is what is left, and what has no solution ends the run."""
    network = new_network()
    x, shape = network.add_input("x", trt.float32, X.shape), network.add_input("shape", trt.int32, (2,))
    layer = network.add_shuffle(x)
    layer.set_input(1, shape)
    layer.second_transpose = (1, 0)
    runs = engines(network, layer)
    for asked, meant in (((3, 4), (3, 4)), ((0, -1), (2, 6)), ((-1, 1), (12, 1)), ((4, 3), (4, 3))):
        check(runs, {"x": X, "shape": ints(*asked)}, X.reshape(meant).T)
    for engine in runs:
        for asked in ((5, 5), (-1, -1), (0, 5)):
            with pytest.raises(InvalidInputError, match="another number of elements than there are"):
                engine.run({"x": X, "shape": ints(*asked)})


@pytest.mark.parametrize("placeholders", [True, False])
def test_reshape_of_nothing(placeholders: bool) -> None:
    """tensorrt-features.md#1.37b and 1.37c: a 0 is a length without placeholders, and with it nothing tells what -1 is.
    """
    network = new_network()
    x, shape = network.add_input("x", trt.float32, (3, 0)), network.add_input("shape", trt.int32, (2,))
    layer = network.add_shuffle(x)
    layer.zero_is_placeholder = placeholders
    layer.set_input(1, shape)
    empty, asked = np.zeros((3, 0), np.float32), ints(0, 0)
    runs = engines(network, layer)
    check(runs, {"x": empty, "shape": asked}, np.zeros((3 if placeholders else 0, 0), np.float32))
    for engine in runs:
        with pytest.raises(InvalidInputError, match="-1"):
            engine.run({"x": empty, "shape": ints(-1, 0)})


def test_slice() -> None:
    """tensorrt-features.md#1.38a and 1.38c: start and size of the run, inside of the tensor or not at all."""
    network = new_network()
    x = network.add_input("x", trt.float32, X.shape)
    layer = network.add_slice(x, (0, 0), (1, 1), (1, -2))
    for index, name in ((1, "start"), (2, "size")):
        layer.set_input(index, network.add_input(name, trt.int32, (2,)))
    runs = engines(network, layer)
    for start, size in (((0, 5), (2, 3)), ((1, 4), (1, 2)), ((0, 1), (1, 0)), ((1, 0), (1, 1))):
        want = X[start[0] : start[0] + size[0], start[1] :: -2][:, : size[1]]
        check(runs, {"x": X, "start": ints(*start), "size": ints(*size)}, want)
    for engine in runs:
        for start, size in (((0, 5), (3, 1)), ((0, 5), (1, 4)), ((0, 6), (1, 1))):
            with pytest.raises(InvalidInputError, match="out of bounds slice on axis"):
                engine.run({"x": X, "start": ints(*start), "size": ints(*size)})


def test_fill() -> None:
    """tensorrt-features.md#1.11: 1, 3, 5, .. as many as the input says."""
    network = new_network()
    layer = network.add_fill((1,), trt.FillOperation.LINSPACE)
    layer.set_input(0, network.add_input("shape", trt.int32, (1,)))
    layer.set_input(1, constant(network, np.array(1, np.float32)))
    layer.set_input(2, constant(network, np.array([2], np.float32)))
    runs = engines(network, layer)
    for length in (3, 1, 5, 0):
        check(runs, {"shape": ints(length)}, 1 + 2 * np.arange(length, dtype=np.float32))
    for engine in runs:
        with pytest.raises(InvalidInputError, match="-1"):
            engine.run({"shape": ints(-1)})


def test_resize() -> None:
    """tensorrt-features.md#1.31a: twice and three times as large."""
    network = new_network()
    layer = network.add_resize(network.add_input("x", trt.float32, X.shape))
    layer.set_input(1, network.add_input("shape", trt.int32, (2,)))
    runs = engines(network, layer)
    for factors in ((2, 3), (1, 1)):
        want = X.repeat(factors[0], 0).repeat(factors[1], 1)
        check(runs, {"x": X, "shape": ints(*want.shape)}, want)


def test_shapes_follow_what_the_run_finds() -> None:
    """tensorrt-features.md#1.45, 6.6 and 6.8: as many elements of a row as there are that are not zero, from data to
    shape to data.
    """
    network = new_network()
    x, row = network.add_input("x", trt.float32, (2, 6)), network.add_input("row", trt.float32, (12,))
    places = network.add_non_zero(x).get_output(0)
    count = network.add_slice(network.add_shape(places).get_output(0), (1,), (1,), (1,)).get_output(0)
    part = network.add_slice(row, (0,), (1,), (1,))
    part.set_input(2, count)
    runs = engines(network, network.add_unary(part.get_output(0), trt.UnaryOperation.NEG))
    numbers = np.arange(12, dtype=np.float32)
    for data in (X, np.zeros_like(X), np.eye(2, 6, dtype=np.float32)):
        check(runs, {"x": data, "row": numbers}, -numbers[: np.count_nonzero(data)])


def test_lengths_of_inputs_need_no_run() -> None:
    """tensorrt-features.md#6.1: what follows from the shapes of inputs is known once they are."""
    network = new_network()
    x = network.add_input("x", trt.float32, (-1, 6))
    lengths = network.add_shape(x).get_output(0)
    layer = network.add_shuffle(x)
    swapped = [network.add_slice(lengths, (k,), (1,), (1,)).get_output(0) for k in (1, 0)]
    layer.set_input(1, network.add_concatenation(swapped).get_output(0))
    runs = engines(network, layer)
    assert "define_size" not in str(cast("ReferenceEngine", runs[0]).module)
    check(runs, {"x": X}, X.reshape(6, 2))
