"""Unique: sorted, equal elements are neighbours, and the first of each is what the result keeps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mlirt.dialects.symbolic import Dim, product
from mlirt.frontend.importing import layers
from mlirt.frontend.importing.data_dependent_sizes import number, true_positions
from mlirt.frontend.importing.network import Network, Value
from mlirt.frontend.onnx.handlers import onnx_op
from mlirt.frontend.onnx.node import Node


@onnx_op("Unique")
def unique(net: Network, node: Node) -> Sequence[Value]:
    """The elements of the whole tensor, where each was first, which of them each was, and how often there is each."""
    x = node.input(0)
    if node.has("axis") and x.rank != 1:
        raise node.unsupported("the slices along an axis; without an axis it takes elements")
    length = product(x.dims)
    ordered, places = _sorted(net, layers.reshape(net, x, [length]), length)
    ranks = layers.counting(net, "int64", length)
    before = _picked(
        net, ordered, layers.binary(net, "max", layers.binary(net, "sub", ranks, number(net, 1)), number(net, 0))
    )
    differs = layers.unary(net, "not", layers.binary(net, "equal", ordered, before))
    is_first = layers.binary(net, "or", differs, layers.binary(net, "equal", ranks, number(net, 0)))
    firsts = true_positions(net, is_first, node.name)
    count = firsts.dims[0]
    groups = net.emit("cumulative", [layers.cast(net, is_first, "int64")], kind="sum", axis=0)
    groups = layers.binary(net, "sub", groups, number(net, 1))
    values, indices = _picked(net, ordered, firsts), _picked(net, places, firsts)
    counts = _scattered(net, count, groups, layers.expand(net, net.constant(np.ones(1, np.int64)), [length]), adds=True)
    inverse = _scattered(net, length, places, groups)
    if not node.integer("sorted", 1):
        _, order = _sorted(net, indices, count)
        values, indices, counts = (_picked(net, one, order) for one in (values, indices, counts))
        own = _scattered(net, count, order, layers.counting(net, "int64", count))
        inverse = _picked(net, own, inverse)
    return [values, indices, inverse, counts]


def _sorted(net: Network, x: Value, length: Dim) -> tuple[Value, Value]:
    """The elements from the smallest on, and where each was; equal ones stay in their order."""
    k = {"k": length} if isinstance(length, int) else {"size": [length]}
    values, places = net.emit_many("topk", [x], 2, kind="min", axis=0, sorted=True, **k)
    return values, layers.cast(net, places, "int64")


def _picked(net: Network, x: Value, places: Value) -> Value:
    return net.emit("gather", [x, places], mode="default", axis=0)


def _scattered(net: Network, length: Dim, places: Value, updates: Value, *, adds: bool = False) -> Value:
    """Updates at their places of a vector of zeros, no two at one; with `adds` the sums of those at one place."""
    zeros = layers.expand(net, net.constant(np.zeros(1, np.int64)), [length])
    how = {"reduction": "add"} if adds else {"unique_indices": True}
    return net.emit("scatter", [zeros, places, updates], mode="element", axis=0, **how)
