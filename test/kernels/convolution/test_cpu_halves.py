"""Convolutions between halves on the CPU, compiled, against the meaning of the network, and on their fast kernels."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import mlirt
from mlirt.dialects.context import RtContext
from mlirt.dialects.interpreter import interpret
from mlirt.dialects.kernel.core import FuncOp
from mlirt.frontend.onnx.importer import import_model
from mlirt.passes.phases import TargetMachine
from mlirt.passes.pipeline import PipelineOptions, run_phases
from mlirt.tools.input_files import new_context

RNG = np.random.default_rng(0)
# The rounding of a result, and that of the elements.
HALVES: dict[str, tuple[int, Any, float]] = {
    "float16": (TensorProto.FLOAT16, np.float16, 2.0**-9),
    "bfloat16": (TensorProto.BFLOAT16, ml_dtypes.bfloat16, 2.0**-6),
}
# Operator, channels, results, groups, the window and the attributes.
LAYERS: dict[str, tuple[str, int, int, int, tuple[int, int], dict[str, Any]]] = {
    "point": ("Conv", 32, 37, 1, (1, 1), {}),
    "window": ("Conv", 20, 32, 1, (3, 3), {"pads": [1, 1, 1, 1]}),
    "few channels": ("Conv", 3, 16, 1, (3, 5), {"pads": [1, 2, 1, 2], "strides": [2, 2]}),
    "depthwise": ("Conv", 33, 33, 33, (3, 3), {"pads": [1, 1, 1, 1]}),
    "groups": ("Conv", 32, 64, 4, (3, 3), {"pads": [1, 1, 1, 1]}),
    "deconvolution": ("ConvTranspose", 18, 20, 1, (2, 2), {"strides": [2, 2]}),
}


def model_of(layer: str, element: int, number: Any, batch: int, *, pools: bool = False) -> onnx.ModelProto:
    """One layer between halves, perhaps with a pooling behind it."""
    kind, channels, results, groups, window, attributes = LAYERS[layer]
    shape = (results, channels // groups) if kind == "Conv" else (channels, results // groups)
    weights = {"k": RNG.standard_normal((*shape, *window)) / 4, "b": RNG.standard_normal(results)}
    nodes = [helper.make_node(kind, ["x", "k", "b"], ["c"], group=groups, **attributes)]
    nodes += [helper.make_node("MaxPool", ["c"], ["p"], kernel_shape=[2, 2], strides=[2, 2])] if pools else []
    graph = helper.make_graph(
        nodes,
        "network",
        [helper.make_tensor_value_info("x", element, [batch, channels, 9, 14])],
        [helper.make_tensor_value_info(nodes[-1].output[0], element, None)],
        [numpy_helper.from_array(array.astype(number), key) for key, array in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10)


@pytest.mark.parametrize("half", HALVES)
@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("pools", [False, True])
def test_a_layer_between_halves(half: str, layer: str, pools: bool) -> None:
    element, number, rounding = HALVES[half]
    model = model_of(layer, element, number, 5, pools=pools)
    x = RNG.standard_normal((5, LAYERS[layer][1], 9, 14)).astype(number)
    if layer != "window" and layer != "groups":  # whose transforms mix what lies in a tile
        x[0, 0, 4, 4] = np.inf
        x[1, 0, 4, 4] = np.nan
    ctx = RtContext()
    (expected,) = interpret(import_model(model, ctx), ctx, {"x": x}).values()
    (found,) = mlirt.compile(model, target="cpu").run({"x": x}).values()
    assert found.dtype == expected.dtype == number
    wide, wanted = found.astype(np.float32), expected.astype(np.float32)
    np.testing.assert_allclose(wide, wanted, rtol=rounding, atol=rounding)


@pytest.mark.parametrize("half", HALVES)
@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("vector_bits", [128, 256, 512])
def test_no_launch_is_a_general_loop(half: str, layer: str, vector_bits: int) -> None:
    """Sums of products are those of register tiles, and what goes into blocks and out of them is transposed in them."""
    element, number, _ = HALVES[half]
    ctx = new_context()
    module = import_model(model_of(layer, element, number, 2), ctx)
    options = PipelineOptions("cpu", machine=TargetMachine(vector_bits=vector_bits))
    run_phases(module, ctx, None, "lowering", options)
    kernels = [{op.name for op in kernel.walk()} for kernel in module.walk() if isinstance(kernel, FuncOp)]
    products = {"kernel.tile_multiply_add", "kernel.tile_multiply_add_lanes"}
    assert any(products & names for names in kernels)
    is_plain = LAYERS[layer][1] < vector_bits // 32  # the input has too few channels for blocks
    assert sum("kernel.tile_load_transposed" in names for names in kernels) == (1 if is_plain else 2)
