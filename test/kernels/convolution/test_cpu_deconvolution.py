"""Deconvolutions as convolutions that write their pixels in turn, compiled, against the meaning of the network."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import mlirt
from mlirt.dialects.context import RtContext
from mlirt.dialects.interpreter import interpret
from mlirt.frontend.onnx.importer import import_model

RNG = np.random.default_rng(0)
# Channels, channels of the result, groups, the window, and the image.
CASES: dict[str, tuple[int, int, int, tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    "window as stride": (32, 24, 1, (2, 2), (9, 13), {"strides": [2, 2]}),
    "last steps cut": (20, 37, 1, (3, 4), (7, 11), {"strides": [2, 3], "pads": [1, 2, 1, 1]}),
    "dilated": (16, 16, 1, (2, 3), (6, 8), {"strides": [2, 2], "dilations": [2, 1], "output_padding": [1, 0]}),
    "few channels to many": (3, 16, 1, (3, 3), (10, 15), {"strides": [2, 2], "pads": [1, 1, 1, 1]}),
    "groups": (64, 32, 2, (3, 3), (5, 6), {"strides": [2, 1], "pads": [1, 1, 1, 1]}),
    "depthwise": (24, 24, 24, (4, 4), (8, 5), {"strides": [2, 2], "pads": [1, 1, 1, 1]}),
    "signal": (16, 32, 1, (8,), (29,), {"strides": [4], "pads": [2, 2]}),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("is_dynamic", [False, True])
def test_deconvolution(name: str, is_dynamic: bool) -> None:
    """Behind it a sum of two tensors and a convolution, which wants a border of zeros around the pixels."""
    channels, results, groups, window, image, attributes = CASES[name]
    axes = len(window)
    weights = {
        "k": RNG.standard_normal((channels, results // groups, *window)).astype(np.float32),
        "b": RNG.standard_normal(results).astype(np.float32),
        "w": RNG.standard_normal((16, results, *[3] * axes)).astype(np.float32),
    }
    nodes = [
        helper.make_node("ConvTranspose", ["x", "k", "b"], ["c"], group=groups, **attributes),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("Sigmoid", ["c"], ["s"]),
        helper.make_node("Add", ["r", "s"], ["a"]),
        helper.make_node("Conv", ["a", "w"], ["y"], pads=[1] * (2 * axes)),
    ]
    sizes = ["n", channels, *"hw"[:axes]] if is_dynamic else [5, channels, *image]
    graph = helper.make_graph(
        nodes,
        "network",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, sizes)],
        [helper.make_tensor_value_info(one, TensorProto.FLOAT, None) for one in ("a", "y")],
        [numpy_helper.from_array(array, key) for key, array in weights.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    x = RNG.standard_normal((5, channels, *image)).astype(np.float32)
    if (
        "dilations" not in attributes
    ):  # what lies between the taps of a dilated window are zeros, which NaN gets through
        x[0, 0, 0] = np.nan
    ctx = RtContext()
    expected = interpret(import_model(model, ctx), ctx, {"x": x})
    engine = mlirt.compile(model, target="cpu")
    for _ in range(2):  # the border is written where another buffer has been there before
        for key, found in engine.run({"x": x}).items():
            np.testing.assert_allclose(found, expected[key], rtol=2e-4, atol=2e-4)
