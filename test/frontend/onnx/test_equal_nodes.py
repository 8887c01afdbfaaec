"""The types of a node's results are asked for once for all nodes that are equal but for their tensors."""

from __future__ import annotations

from typing import Any
from unittest import mock

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx_models import model_of
from xdsl.utils.test_value import create_ssa_value

from mlirt.builder.model_network import imported
from mlirt.dialects.context import RtContext
from mlirt.frontend.importing import number_arrays


def _chain(layers: int) -> onnx.ModelProto:
    rng, nodes, weights, value = np.random.default_rng(0), list[onnx.NodeProto](), dict[str, Any](), "x"
    for k in range(layers):
        weights |= {f"w{k}": rng.random((4, 4, 3, 3), np.float32), f"b{k}": rng.random(4, np.float32)}
        nodes.append(helper.make_node("Conv", [value, f"w{k}", f"b{k}"], [f"c{k}"], pads=[1, 1, 1, 1]))
        nodes.append(helper.make_node("Relu", [f"c{k}"], [f"r{k}"]))
        value = f"r{k}"
    return model_of(nodes, {"x": ("float32", (1, 4, 8, 8))}, [value], weights)


@pytest.mark.parametrize("layers", [2, 20])
def test_types_are_inferred_once(layers: int) -> None:
    with mock.patch("mlirt.frontend.importing.network.create_ssa_value", wraps=create_ssa_value) as stand_in:
        module = imported(_chain(layers), RtContext(), {}, {}, None)
    assert sum(op.name == "trt.convolution" for op in module.walk()) == layers
    assert stand_in.call_count == 4  # for the operands of one convolution and of one activation


def test_weights_of_layers_that_are_no_shape_arithmetic_are_not_read_as_lengths() -> None:
    with mock.patch.object(number_arrays, "from_float", side_effect=AssertionError):
        imported(_chain(2), RtContext(), {}, {}, None)
