"""Ops of the domain com.microsoft that onnxruntime's optimiser writes: known ops with something in front or behind."""

from __future__ import annotations

from collections.abc import Sequence

from mlirt.frontend.importing import layers
from mlirt.frontend.importing.clipping import clipped
from mlirt.frontend.importing.network import Network, Value
from mlirt.frontend.importing.normalization import mean_inverse_and_standardized
from mlirt.frontend.importing.products import product
from mlirt.frontend.onnx.handlers import onnx_op
from mlirt.frontend.onnx.node import Node
from mlirt.frontend.onnx.ops_convolution import convolve
from mlirt.frontend.onnx.ops_matmul import gemm

_DOMAIN = "com.microsoft"


@onnx_op("FusedConv", domain=_DOMAIN)
def fused_convolution(net: Network, node: Node) -> Value:
    """A convolution, the sum with a fourth input, and an activation."""
    result = convolve(net, node, node.input(0), node.input(1), node.optional(2))
    added = node.optional(3)
    result = result if added is None else layers.binary(net, "sum", result, added)
    return _activated(net, node, result, node.text("activation", ""), node.reals("activation_params", []))


@onnx_op("FusedGemm", domain=_DOMAIN)
def fused_gemm(net: Network, node: Node) -> Value:
    parameters = [node.real(f"activation_{name}", 0.0) for name in ("alpha", "beta") if node.has(f"activation_{name}")]
    return _activated(net, node, gemm(net, node), node.text("activation", ""), parameters)


def _activated(net: Network, node: Node, x: Value, name: str, parameters: Sequence[float]) -> Value:
    first, second = (*parameters, 0.0, 0.0)[:2]
    if not name:
        return x
    if name == "Clip":
        return clipped(net, x, first, second)
    if name == "LeakyRelu":
        return layers.activation(net, "leaky_relu", x, first if parameters else 0.01)
    if name == "HardSigmoid":
        return layers.activation(net, "hard_sigmoid", x, first, second)
    if name in ("Relu", "Sigmoid", "Tanh"):
        return layers.activation(net, name.lower(), x)
    raise node.unsupported(f"the activation {name!r} is not known")


@onnx_op("FusedMatMul", "TransposeMatMul", domain=_DOMAIN)
def fused_matmul(net: Network, node: Node) -> Value:
    if node.integer("transBatchA", 0) or node.integer("transBatchB", 0):
        raise node.unsupported("transposed batch dimensions are not known")
    a, b = (
        _swapped(net, node.input(k)) if node.integer(name, 0) else node.input(k)
        for k, name in enumerate(("transA", "transB"))
    )
    result, alpha = product(net, node, a, b), node.real("alpha", 1.0)
    return result if alpha == 1.0 else layers.binary(net, "prod", result, layers.scalar_like(net, alpha, result))


def _swapped(net: Network, x: Value) -> Value:
    return x if x.rank < 2 else layers.transpose(net, x, [*range(x.rank - 2), x.rank - 1, x.rank - 2])


@onnx_op("BiasGelu", domain=_DOMAIN)
def bias_gelu(net: Network, node: Node) -> Value:
    return layers.activation(net, "gelu_erf", layers.binary(net, "sum", node.input(0), node.input(1)))


@onnx_op("SkipLayerNormalization", domain=_DOMAIN)
def skip_layer_normalization(net: Network, node: Node) -> Sequence[Value]:
    """The layer normalisation of a sum, over the last axis; the sum itself is the fourth result."""
    total = layers.binary(net, "sum", node.input(0), node.input(1))
    bias = node.optional(4)
    total = total if bias is None else layers.binary(net, "sum", total, bias)
    epsilon = node.real("epsilon", 1e-5)
    mean, inverse, normalized = mean_inverse_and_standardized(net, total, [total.rank - 1], epsilon)
    result = layers.binary(net, "prod", normalized, node.input(2))
    beta = node.optional(3)
    return [result if beta is None else layers.binary(net, "sum", result, beta), mean, inverse, total]
