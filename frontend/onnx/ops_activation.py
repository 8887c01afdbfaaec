"""Pointwise ops with one input: activations and unary functions."""

from __future__ import annotations

import numpy as np

from mlirt.dialects.tensor_types import is_float
from mlirt.frontend.importing import layers
from mlirt.frontend.importing.clipping import clipped
from mlirt.frontend.importing.network import Network, Value
from mlirt.frontend.onnx.handlers import onnx_op
from mlirt.frontend.onnx.node import Node, scalar

# Name in ONNX: kind in trt, default alpha, default beta, attributes that hold them.
_ACTIVATIONS: dict[str, tuple[str, float, float]] = {
    "Relu": ("relu", 0.0, 0.0),
    "Sigmoid": ("sigmoid", 0.0, 0.0),
    "Tanh": ("tanh", 0.0, 0.0),
    "LeakyRelu": ("leaky_relu", 0.01, 0.0),
    "Elu": ("elu", 1.0, 0.0),
    "Softsign": ("softsign", 0.0, 0.0),
    "HardSigmoid": ("hard_sigmoid", 0.2, 0.5),
    "ThresholdedRelu": ("thresholded_relu", 1.0, 0.0),
    "Celu": ("celu", 1.0, 0.0),
    "Mish": ("mish", 0.0, 0.0),
}

_UNARY = {
    "Exp": "exp",
    "Log": "log",
    "Sqrt": "sqrt",
    "Reciprocal": "recip",
    "Abs": "abs",
    "Neg": "neg",
    "Sin": "sin",
    "Cos": "cos",
    "Tan": "tan",
    "Sinh": "sinh",
    "Cosh": "cosh",
    "Asin": "asin",
    "Acos": "acos",
    "Atan": "atan",
    "Asinh": "asinh",
    "Acosh": "acosh",
    "Atanh": "atanh",
    "Ceil": "ceil",
    "Floor": "floor",
    "Erf": "erf",
    "Not": "not",
    "Sign": "sign",
    "Round": "round",
    "BitwiseNot": "bitwise_not",
}


@onnx_op(*_ACTIVATIONS)
def activation(net: Network, node: Node) -> Value:
    kind, alpha, beta = _ACTIVATIONS[node.op_type]
    return layers.activation(net, kind, node.input(0), node.real("alpha", alpha), node.real("beta", beta))


@onnx_op("Selu")
def selu(net: Network, node: Node) -> Value:
    alpha, gamma = node.real("alpha", 1.67326319217681884765625), node.real("gamma", 1.05070102214813232421875)
    return layers.activation(net, "selu", node.input(0), alpha, gamma)


@onnx_op("Softplus")
def softplus(net: Network, node: Node) -> Value:
    return layers.activation(net, "softplus", node.input(0), 1.0, 1.0)


@onnx_op("HardSwish")
def hard_swish(net: Network, node: Node) -> Value:
    return layers.activation(net, "hard_swish", node.input(0), 1 / 6, 0.5)


@onnx_op("Gelu", since=20)
@onnx_op("Gelu", domain="com.microsoft")
def gelu(net: Network, node: Node) -> Value:
    form = node.text("approximate", "none")
    if form not in ("none", "tanh"):
        raise node.invalid(f"expected approximate as 'none' or 'tanh', got {form!r}")
    return layers.activation(net, "gelu_tanh" if form == "tanh" else "gelu_erf", node.input(0))


@onnx_op("FastGelu", domain="com.microsoft")
def fast_gelu(net: Network, node: Node) -> Value:
    bias = node.optional(1)
    x = node.input(0) if bias is None else layers.binary(net, "sum", node.input(0), bias)
    return layers.activation(net, "gelu_tanh", x)


@onnx_op("QuickGelu", domain="com.microsoft")
@onnx_op("Swish", since=24)
def swish(net: Network, node: Node) -> Value:
    """x sigmoid(alpha x)."""
    x = node.input(0)
    alpha = node.real("alpha", 1.0 if node.op_type == "Swish" else 1.702)
    scaled = x if alpha == 1.0 else layers.binary(net, "prod", x, layers.scalar_like(net, alpha, x))
    return layers.binary(net, "prod", x, layers.activation(net, "sigmoid", scaled))


@onnx_op("Clip")
def clip(net: Network, node: Node) -> Value:
    """Bounds by attributes (6), by inputs (11), of any number type (12); a missing one is the type's limit."""
    x = node.input(0)
    if node.opset < 11:
        bounds = [node.real(name, 0.0) if node.has(name) else None for name in ("min", "max")]
    else:
        given = [node.optional(k) for k in (1, 2)]
        if any(bound is not None and bound.array is None for bound in given):
            return _clip_at_run_time(net, x, given[0], given[1])
        bounds = [None if bound is None or bound.array is None else scalar(bound.array) for bound in given]
    return clipped(net, x, bounds[0], bounds[1])


def _clip_at_run_time(net: Network, x: Value, low: Value | None, high: Value | None) -> Value:
    raised = x if low is None else layers.binary(net, "max", x, _bound(net, low, -np.inf))
    return raised if high is None else layers.binary(net, "min", raised, _bound(net, high, np.inf))


def _bound(net: Network, given: Value, without: float) -> Value:
    """A bound that the run tells; one that is not a number bounds nothing, as where it is known."""
    bound = layers.reshape(net, given, [])
    if not is_float(bound.element):
        return bound
    return layers.select(net, layers.unary(net, "isnan", bound), layers.scalar_like(net, without, bound), bound)


@onnx_op(*_UNARY)
def unary(net: Network, node: Node) -> Value:
    x = node.input(0)
    if not is_float(x.element) and node.op_type in ("Ceil", "Floor", "Round"):
        return x
    return layers.unary(net, _UNARY[node.op_type], x)


@onnx_op("IsNaN")
def is_nan(net: Network, node: Node) -> Value:
    return layers.unary(net, "isnan", node.input(0))


@onnx_op("IsInf")
def is_inf(net: Network, node: Node) -> Value:
    x, positive, negative = node.input(0), node.integer("detect_positive", 1), node.integer("detect_negative", 1)
    if positive and negative:
        return layers.unary(net, "isinf", x)
    if not positive and not negative:
        false = layers.unary(net, "isnan", x)
        return layers.binary(net, "and", false, layers.unary(net, "not", false))
    return layers.binary(net, "equal", x, layers.scalar_like(net, np.inf if positive else -np.inf, x))


@onnx_op("Shrink")
def shrink(net: Network, node: Node) -> Value:
    """x + bias below -lambd, x - bias above lambd, else 0."""
    x, bias, limit = node.input(0), node.real("bias", 0.0), node.real("lambd", 0.5)
    zero, shift, bound = (layers.scalar_like(net, value, x) for value in (0.0, bias, limit))
    low = layers.binary(net, "less", x, layers.scalar_like(net, -limit, x))
    high = layers.binary(net, "greater", x, bound)
    inner = layers.select(net, high, layers.binary(net, "sub", x, shift), zero)
    return layers.select(net, low, layers.binary(net, "sum", x, shift), inner)


@onnx_op("PRelu")
def parametric_relu(net: Network, node: Node) -> Value:
    x, slope = node.input(0), node.input(1)
    if node.opset < 7 and slope.rank == 1 and x.rank > 1 and slope.dims != (1,):
        slope = layers.reshape(net, slope, [*slope.dims, *[1] * (x.rank - 2)])
    left, right = layers.aligned(net, [x, slope])
    return net.emit("parametric_relu", [left, layers.broadcast_to(net, right, left.dims)])
