"""A U-Net's decoder fits its encoder for even sizes alone; other images are refused by name, on any target."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx_models import model_of, numbers

import mlirt
from mlirt.errors import InvalidInputError


@pytest.mark.parametrize(
    "joint",
    [
        helper.make_node("Concat", ["x", "whole"], ["y"], name="join", axis=1),
        helper.make_node("Add", ["x", "whole"], ["y"], name="join"),
    ],
    ids=lambda node: node.op_type,
)
def test_a_skip_connection_of_an_odd_image(joint: onnx.NodeProto) -> None:
    nodes = [
        helper.make_node("Conv", ["x", "kernel"], ["half"], pads=[1, 1, 1, 1], strides=[2, 2]),
        helper.make_node("ConvTranspose", ["half", "spread"], ["whole"], strides=[2, 2]),
        joint,
    ]
    weights = {"kernel": numbers(4, 4, 3, 3), "spread": numbers(4, 4, 2, 2, seed=1)}
    model = model_of(nodes, {"x": ("float32", [1, 4, "h", "w"])}, ["y"], weights)
    engine = mlirt.compile(model, "cpu")
    x = numbers(1, 4, 6, 8)
    np.testing.assert_allclose(
        engine.run({"x": x})["y"], mlirt.compile(model, "reference").run({"x": x})["y"], 1e-4, 1e-5
    )
    for sides, lengths in (((5, 8), "5 and 6"), ((6, 7), "7 and 8")):
        with pytest.raises(InvalidInputError, match=f"layer join: its inputs have the lengths {lengths}"):
            engine.run({"x": numbers(1, 4, *sides)})
