"""Patches as a product give the numbers of the convolution that they were."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from mlirt.dialects.context import RtContext
from mlirt.dialects.interpreter import interpret
from mlirt.frontend.onnx.importer import import_model
from mlirt.passes.pipeline import check_ir, run_passes


def _model(batch: int | str, channels: int, lengths: tuple[int, ...], window: tuple[int, ...]) -> onnx.ModelProto:
    rng = np.random.default_rng(0)
    weights = {"w": rng.standard_normal((5, channels, *window)), "b": rng.standard_normal(5)}
    graph = helper.make_graph(
        [helper.make_node("Conv", ["x", "w", "b"], ["y"], strides=window)],
        "patches",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [batch, channels, *lengths])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(array.astype(np.float32), name) for name, array in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


@pytest.mark.parametrize(
    ("batch", "channels", "lengths", "window"),
    [(2, 3, (8, 12), (4, 4)), ("n", 1, (24,), (6,)), (1, 2, (4, 6, 6), (2, 3, 2))],
)
def test_numbers_stay(batch: int | str, channels: int, lengths: tuple[int, ...], window: tuple[int, ...]) -> None:
    context = RtContext()
    module = import_model(_model(batch, channels, lengths, window), context)
    rows = batch if isinstance(batch, int) else 3
    feeds = {"x": np.random.default_rng(1).standard_normal((rows, channels, *lengths)).astype(np.float32)}
    want = interpret(module, context, feeds)
    run_passes(module, context, "convert-patches-to-product{min-cells=4}")
    check_ir(module)
    assert "trt.matrix_multiply" in str(module)
    np.testing.assert_allclose(interpret(module, context, feeds)["y"], want["y"], rtol=1e-5, atol=1e-6)
