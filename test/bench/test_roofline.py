"""What layers cannot go below: operations and bytes from an engine's own records."""

from __future__ import annotations

import math

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from roofline import PEAKS, bytes_of, layer_times, operations_of

import mlirt


def _engine(node: onnx.NodeProto, weight: tuple[int, ...], shape: tuple[int, ...]) -> mlirt.Engine:
    array = np.random.default_rng(0).standard_normal(weight).astype(np.float32)
    graph = helper.make_graph(
        [node],
        "layer",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(array, "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    engine = mlirt.compile(model, "cpu")
    assert isinstance(engine, mlirt.Engine)
    return engine


CASES = {
    "product": (helper.make_node("MatMul", ["x", "w"], ["y"]), (32, 48), (5, 32), 2 * 5 * 48 * 32, 5 * 48),
    "convolution": (
        helper.make_node("Conv", ["x", "w"], ["y"]),
        (16, 8, 3, 3),
        (2, 8, 10, 10),
        2 * (2 * 16 * 8 * 8) * (8 * 9),
        2 * 16 * 8 * 8,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_weights_count(name: str) -> None:
    node, weight, shape, operations, results = CASES[name]
    layers = [one for one in _engine(node, weight, shape).layers if operations_of(one)]
    assert [operations_of(one) for one in layers] == [operations]
    assert bytes_of(layers[0]) == 4 * (math.prod(shape) + math.prod(weight) + results)


def test_the_share_is_that_of_the_slower_limit() -> None:
    node, weight, shape, operations, _ = CASES["product"]
    layers, peaks = _engine(node, weight, shape).layers, PEAKS["NVIDIA H200"]
    (found,) = [one for one in layer_times(layers, [10.0] * len(layers), peaks) if one.operations]
    moved = bytes_of(next(one for one in layers if operations_of(one)))
    assert found.roof == pytest.approx(1e6 * max(operations / peaks.float32, moved / peaks.bytes))
    assert found.share == pytest.approx(found.roof / 10)
