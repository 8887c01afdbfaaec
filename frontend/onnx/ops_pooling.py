"""Poolings: windows that slide, and whole channels."""

from __future__ import annotations

import math
from collections.abc import Sequence

from mlirt.dialects.tensor_types import is_float
from mlirt.frontend.importing import layers, pooling
from mlirt.frontend.importing.network import Network, Value
from mlirt.frontend.importing.places_of_maxima import places_of_maxima
from mlirt.frontend.onnx.handlers import onnx_op
from mlirt.frontend.onnx.node import Node
from mlirt.frontend.onnx.windows import geometry_of


@onnx_op("MaxPool")
def max_pool(net: Network, node: Node) -> Value | Sequence[Value]:
    x = node.input(0)
    result = pool(net, node, x, "max")
    if not node.wants(1):
        return result
    sizes = _window(node, x)
    geometry = geometry_of(node, sizes, x.dims[2:])
    if geometry.mode.startswith("same"):
        raise node.unsupported(
            "its second output (Indices) needs sizes that are known at build time with this auto_pad"
        )
    by_columns = bool(node.integer("storage_order", 0))
    return [result, places_of_maxima(net, x, result, sizes, geometry, by_columns=by_columns)]


@onnx_op("AveragePool")
def average_pool(net: Network, node: Node) -> Value:
    return pool(net, node, node.input(0), "average", excludes_padding=not node.integer("count_include_pad", 0))


@onnx_op("LpPool")
def lp_pool(net: Network, node: Node) -> Value:
    """(sum of |x|^p)^(1/p): the mean of |x|^p times the window's volume, where cells of padding count as zeros."""
    p, x = _exponent(node), node.input(0)
    powers = _absolute_power(net, x, p)
    sizes = _window(node, x)
    geometry = geometry_of(node, sizes, x.dims[2:])
    total = layers.binary(
        net,
        "prod",
        pooling.mean_of_whole_windows(net, powers, sizes, geometry, ceil_mode=_counts_partial_windows(node)),
        layers.scalar_like(net, math.prod(sizes), x),
    )
    return _root(net, total, p)


@onnx_op("GlobalAveragePool")
def global_average_pool(net: Network, node: Node) -> Value:
    return layers.reduce(net, "avg", node.input(0), _spatial(node))


@onnx_op("GlobalMaxPool")
def global_max_pool(net: Network, node: Node) -> Value:
    return layers.reduce(net, "max", node.input(0), _spatial(node))


@onnx_op("GlobalLpPool")
def global_lp_pool(net: Network, node: Node) -> Value:
    p = _exponent(node)
    return _root(net, layers.reduce(net, "sum", _absolute_power(net, node.input(0), p), _spatial(node)), p)


def pool(net: Network, node: Node, x: Value, kind: str, excludes_padding: bool = True) -> Value:
    """A pooling with the attributes of `node`."""
    sizes = _window(node, x)
    return pooling.pool(
        net,
        x,
        kind,
        sizes,
        geometry_of(node, sizes, x.dims[2:]),
        ceil_mode=_counts_partial_windows(node),
        excludes_padding=excludes_padding,
        counts_overhang=node.opset < 19,
    )


def _counts_partial_windows(node: Node) -> bool:
    return bool(node.integer("ceil_mode", 0)) and node.text("auto_pad", "NOTSET") != "VALID"


def _window(node: Node, x: Value) -> list[int]:
    sizes = node.integers("kernel_shape")
    if not 3 <= x.rank <= 5 or len(sizes) != x.rank - 2:
        raise node.invalid(
            f"expected a kernel_shape of {x.rank - 2} entries for an input of {x.rank} dimensions, got {sizes}"
        )
    return sizes


def _spatial(node: Node) -> list[int]:
    rank = node.input(0).rank
    if rank < 3:
        raise node.invalid(f"expected an input of at least 3 dimensions, but it has {rank}")
    return list(range(2, rank))


def _exponent(node: Node) -> int:
    p, x = node.integer("p", 2), node.input(0)
    if p < 1 or not is_float(x.element):
        raise node.invalid(f"expected a positive p and floating-point numbers, got {p} and {x.element_name}")
    return p


def _absolute_power(net: Network, x: Value, p: int) -> Value:
    absolute = layers.unary(net, "abs", x)
    if p == 1:
        return absolute
    return (
        layers.binary(net, "prod", x, x)
        if p == 2
        else layers.binary(net, "pow", absolute, layers.scalar_like(net, p, x))
    )


def _root(net: Network, x: Value, p: int) -> Value:
    if p == 1:
        return x
    return layers.unary(net, "sqrt", x) if p == 2 else layers.binary(net, "pow", x, layers.scalar_like(net, 1 / p, x))
