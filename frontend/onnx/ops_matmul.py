"""Contractions: MatMul, Gemm, Einsum."""

from __future__ import annotations

from mlirt.dialects.symbolic import Dim
from mlirt.frontend.importing import layers
from mlirt.frontend.importing.network import Network, Value
from mlirt.frontend.importing.products import product
from mlirt.frontend.onnx.handlers import onnx_op
from mlirt.frontend.onnx.node import Node


@onnx_op("MatMul")
def matmul(net: Network, node: Node) -> Value:
    return product(net, node, node.input(0), node.input(1))


@onnx_op("Gemm")
def gemm(net: Network, node: Node) -> Value:
    """alpha A' B' + beta C, where C broadcasts to the result."""
    a, b, c = node.input(0), node.input(1), node.optional(2)
    operations = ["transpose" if node.integer(name, 0) else "none" for name in ("transA", "transB")]
    alpha, beta = node.real("alpha", 1.0), node.real("beta", 1.0)
    result = layers.matrix_multiply(net, a, b, *operations)
    if alpha != 1.0:
        result = layers.binary(net, "prod", result, layers.scalar_like(net, alpha, result))
    if c is None or beta == 0.0:
        return result
    if beta != 1.0:
        c = layers.binary(net, "prod", c, layers.scalar_like(net, beta, c))
    if c.rank > 2 or any(
        have not in (1, want) for have, want in zip(c.dims[::-1], result.dims[::-1]) if _known(have, want)
    ):
        raise node.invalid(f"C of shape {list(map(str, c.dims))} does not broadcast to {list(map(str, result.dims))}")
    return layers.binary(net, "sum", result, layers.broadcast_to(net, c, result.dims))


def _known(*lengths: Dim) -> bool:
    return all(isinstance(length, int) for length in lengths)


@onnx_op("Einsum")
def einsum(net: Network, node: Node) -> Value:
    return net.emit("einsum", [node.present()], equation=node.text("equation"))
