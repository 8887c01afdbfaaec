"""Ops of the domain ai.onnx.ml that scale features and weigh them: what stands in front of networks for tables."""

from __future__ import annotations

import numpy as np

from mlirt.frontend.importing import layers
from mlirt.frontend.importing.network import Network, Value
from mlirt.frontend.onnx.handlers import onnx_op
from mlirt.frontend.onnx.node import Node

_DOMAIN = "ai.onnx.ml"


@onnx_op("Scaler", domain=_DOMAIN)
def scaler(net: Network, node: Node) -> Value:
    """`(x - offset) * scale`, with a number for each feature or one for all."""
    x = layers.cast(net, node.input(0), "float32")
    centred = layers.binary(net, "sub", x, _by_feature(net, node, "offset", x))
    return layers.binary(net, "prod", centred, _by_feature(net, node, "scale", x))


@onnx_op("Binarizer", domain=_DOMAIN)
def binarizer(net: Network, node: Node) -> Value:
    """1 where an element exceeds the threshold, 0 elsewhere."""
    x = node.input(0)
    threshold = layers.scalar_like(net, node.real("threshold", 0.0), x)
    return layers.cast(net, layers.binary(net, "greater", x, threshold), x.element)


@onnx_op("Normalizer", domain=_DOMAIN)
def normalizer(net: Network, node: Node) -> Value:
    """Rows divided by their largest element, or by the norm of one kind; rows of norm 0 stay."""
    x = layers.cast(net, node.input(0), "float32")
    kind, last = node.text("norm", "MAX"), [x.rank - 1]
    if kind == "MAX":
        size = layers.reduce(net, "max", x, last)
    elif kind == "L1":
        size = layers.reduce(net, "sum", layers.unary(net, "abs", x), last)
    elif kind == "L2":
        size = layers.unary(net, "sqrt", layers.reduce(net, "sum", layers.binary(net, "prod", x, x), last))
    else:
        raise node.invalid(f"expected the norm MAX, L1 or L2, got {kind!r}")
    is_zero = layers.binary(net, "equal", size, layers.scalar_like(net, 0.0, size))
    return layers.binary(net, "div", x, layers.select(net, is_zero, layers.scalar_like(net, 1.0, size), size))


@onnx_op("LinearRegressor", domain=_DOMAIN)
def linear_regressor(net: Network, node: Node) -> Value:
    """`x @ coefficients + intercepts`, with a row of coefficients for each target."""
    if node.text("post_transform", "NONE") != "NONE":
        raise node.unsupported(f"post_transform {node.text('post_transform')}; only NONE is read")
    targets = node.integer("targets", 1)
    coefficients = np.array(node.reals("coefficients"), np.float32).reshape(targets, -1)
    x = layers.cast(net, node.input(0), "float32")
    result = layers.matrix_multiply(net, x, net.constant(coefficients), rhs_op="transpose")
    if not node.has("intercepts"):
        return result
    intercepts = net.constant(np.array([node.reals("intercepts")], np.float32))
    return layers.binary(net, "sum", result, intercepts)


def _by_feature(net: Network, node: Node, name: str, x: Value) -> Value:
    values = np.array(node.reals(name), np.float32)
    return net.constant(values.reshape([1] * (x.rank - 1) + [-1]))
