"""Small networks that are built for a GPU by TensorRT's names, and what NumPy makes of them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import onnx
from layer_networks import Array, CollectingLogger, constant, new_network
from network_engines import Ranges, config_for, plan_of
from network_engines import opened as opened_anywhere
from onnx import numpy_helper, parser

import mlirt as trt

NONE = trt.MatrixOperation.NONE
HEURISTIC, TF32 = trt.BuilderFlag.ENABLE_TACTIC_HEURISTIC, trt.BuilderFlag.TF32
WIDTH = 96
LOOP = """
<ir_version: 8, opset_import: ["" : 17]>
doubled (float[8, 64] x, float limit) => (float[8, 64] y) {
   go = Constant <value = bool {1}> ()
   y = Loop (, go, x) <body: graph = body (int64 i, bool go_in, float[8, 64] a) => (bool go_out, float[8, 64] b) {
      b = MatMul (a, twice)
      largest = ReduceMax <keepdims: int = 0> (b)
      go_out = Less (largest, limit)
   }>
}
"""
"""x doubled, by a product with `twice`, until its largest element reaches the limit; once at least."""


def gpu_config(
    logger: trt.ILogger, *flags: trt.BuilderFlag, shapes: Ranges | None = None, has_tf32: bool = False
) -> trt.IBuilderConfig:
    """A configuration for the GPU that measures no kernels unless it is changed."""
    config = config_for("cuda", logger, HEURISTIC, *flags, shapes=shapes)
    if not has_tf32:
        config.clear_flag(TF32)
    return config


def opened(plan: bytes, logger: CollectingLogger) -> trt.ICudaEngine:
    """The engine of a plan, which must be for a GPU."""
    engine = opened_anywhere(plan, logger)
    assert engine.engine.target == "cuda"
    return engine


def two_products_plan(logger: CollectingLogger) -> bytes:
    """y = sigmoid(x @ a) @ b, for 1 to 4000 rows of WIDTH numbers."""
    network = new_network(logger)
    x = network.add_input("x", trt.float32, (-1, WIDTH))
    a, b = (constant(network, one) for one in _factors())
    first = network.add_matrix_multiply(x, NONE, a, NONE)
    curve = network.add_activation(first.get_output(0), trt.ActivationType.SIGMOID)
    y = network.add_matrix_multiply(curve.get_output(0), NONE, b, NONE).get_output(0)
    y.name = "y"
    network.mark_output(y)
    shapes = {"x": ((1, WIDTH), (8, WIDTH), (4000, WIDTH))}
    return plan_of(network, gpu_config(logger, shapes=shapes), logger)


def two_products(x: Array) -> Array:
    """What the network of `two_products_plan` gives."""
    a, b = (one.astype(np.float64) for one in _factors())
    return (1 / (1 + np.exp(-(x @ a))) @ b).astype(np.float32)


def _factors() -> list[Array]:
    random = np.random.default_rng(7)
    return [(random.standard_normal((WIDTH, WIDTH)) / 10).astype(np.float32) for _ in range(2)]


def loop_plan(logger: CollectingLogger) -> bytes:
    """The network LOOP."""
    model: onnx.ModelProto = parser.parse_model(LOOP)
    model.graph.initializer.append(numpy_helper.from_array(2 * np.eye(64, dtype=np.float32), "twice"))
    network = new_network(logger)
    assert trt.OnnxParser(network, logger).parse(model.SerializeToString())
    return plan_of(network, gpu_config(logger), logger)


def products_plan(logger: CollectingLogger, rows: int, widths: Sequence[int], *flags: trt.BuilderFlag) -> bytes:
    """A chain of products with weights [widths[k], widths[k + 1]], and a sigmoid between them."""
    network = new_network(logger)
    x = network.add_input("x", trt.float32, (rows, widths[0]))
    random = np.random.default_rng(3)
    for number, (depth, width) in enumerate(pairwise(widths)):
        if number:
            x = network.add_activation(x, trt.ActivationType.SIGMOID).get_output(0)
        factor = (random.standard_normal((depth, width)) / depth**0.5).astype(np.float32)
        layer = network.add_matrix_multiply(x, NONE, constant(network, factor), NONE)
        layer.name = f"product {number}"
        x = layer.get_output(0)
    x.name = "y"
    network.mark_output(x)
    return plan_of(network, gpu_config(logger, *flags), logger)


def products(x: Array, widths: Sequence[int]) -> Array:
    """What the network of `products_plan` gives."""
    random, found = np.random.default_rng(3), x.astype(np.float64)
    for number, (depth, width) in enumerate(pairwise(widths)):
        if number:
            found = 1 / (1 + np.exp(-found))
        factor = (random.standard_normal((depth, width)) / depth**0.5).astype(np.float32)
        found = found @ factor.astype(np.float64)
    return found.astype(np.float32)


def repeated_product_plan(logger: CollectingLogger, rows: int, width: int, layers: int) -> bytes:
    """x = sigmoid(x @ w) so many times, with the same w [width, width]: much to compute, and little to bring."""
    network = new_network(logger)
    x = network.add_input("x", trt.float32, (rows, width))
    w = constant(network, (np.random.default_rng(3).standard_normal((width, width)) / width**0.5).astype(np.float32))
    for _ in range(layers):
        layer = network.add_matrix_multiply(x, NONE, w, NONE)
        x = network.add_activation(layer.get_output(0), trt.ActivationType.SIGMOID).get_output(0)
    x.name = "y"
    network.mark_output(x)
    return plan_of(network, gpu_config(logger), logger)
