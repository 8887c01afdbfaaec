"""Random numbers: RandomUniform, RandomNormal, Bernoulli, Multinomial."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np

from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_types import element_type, is_float
from mlirt.frontend.importing import layers
from mlirt.frontend.importing.network import Network, Value
from mlirt.frontend.onnx.handlers import onnx_op
from mlirt.frontend.onnx.node import Node
from mlirt.frontend.onnx.tensor_reader import dtype, element_name


@onnx_op("RandomUniform", "RandomUniformLike")
def random_uniform(net: Network, node: Node) -> Value:
    return _scaled(net, node, "uniform", node.real("low", 0.0), node.real("high", 1.0))


@onnx_op("RandomNormal", "RandomNormalLike")
def random_normal(net: Network, node: Node) -> Value:
    return _scaled(net, node, "normal", node.real("mean", 0.0), node.real("scale", 1.0))


@onnx_op("Bernoulli")
def bernoulli(net: Network, node: Node) -> Value:
    """1 as often as the input says, else 0."""
    x = node.input(0)
    drawn = _random(net, node, "uniform", x.dims)
    return layers.cast(net, layers.binary(net, "less", drawn, layers.cast(net, x, "float32")), _element(node, x))


@onnx_op("Multinomial")
def multinomial(net: Network, node: Node) -> Value:
    """Classes as often as the input, logarithms of weights, says: the first whose sum is beyond the number drawn."""
    x, count = layers.cast(net, node.input(0), "float32"), node.integer("sample_size", 1)
    if x.rank != 2:
        raise node.invalid(f"expected weights of two dimensions, got {x.rank}")
    batch, classes = x.dims
    weights = net.emit("softmax", [x], axis=1)
    sums = layers.reshape(net, net.emit("cumulative", [weights], kind="sum", axis=1), [batch, 1, classes])
    whole = layers.along(net, sums, 2, classes - 1, 1)
    drawn = layers.binary(
        net, "prod", layers.reshape(net, _random(net, node, "uniform", [batch, count]), [batch, count, 1]), whole
    )
    passed = layers.cast(net, layers.binary(net, "less_equal", sums, drawn), "int64")
    place = layers.reduce(net, "sum", passed, [2], keep_dims=False)
    last = net.constant(np.array(classes - 1)) if isinstance(classes, int) else layers.length_of(net, x, 1)
    limited = layers.binary(net, "min", place, last)
    return layers.cast(net, limited, element_name(node.integer("dtype", 6), node.label))


def _scaled(net: Network, node: Node, kind: str, alpha: float, beta: float) -> Value:
    if node.present():
        like = node.input(0)
        return _random(net, node, kind, like.dims, _element(node, like), alpha, beta)
    return _random(
        net, node, kind, node.integers("shape"), element_name(node.integer("dtype", 1), node.label), alpha, beta
    )


def _element(node: Node, like: Value) -> str:
    """The element type that the node names, else that of its input."""
    return element_name(node.integer("dtype"), node.label) if node.has("dtype") else like.element_name


def _random(
    net: Network,
    node: Node,
    kind: str,
    dims: Sequence[Dim],
    element: str = "float32",
    alpha: float = 0,
    beta: float = 1,
) -> Value:
    if not is_float(element_type(element)):
        raise node.invalid(f"expected floats, got {element}")
    if net.block is not net.root:
        raise node.unsupported("random numbers inside of branches and loops; feed them as an input")
    run = net.emit("run_number", [])
    scales = [net.constant(np.array(number, dtype(element))) for number in (alpha, beta)]
    return net.emit("random", [run, None, *scales], kind=kind, seed=_seed(net, node), output_dims=list(dims))


def _seed(net: Network, node: Node) -> int:
    """The node's own seed, else one that no other node of the network has, the same each time it is built."""
    if node.has("seed"):
        return zlib.crc32(np.float32(node.real("seed")).tobytes())
    return zlib.crc32(node.name.encode()) + net.nodes_read
