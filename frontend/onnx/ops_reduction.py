"""Reductions over axes, and the position of the largest or smallest element."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mlirt.frontend.importing import layers
from mlirt.frontend.importing.network import Network, Value
from mlirt.frontend.onnx.handlers import onnx_op
from mlirt.frontend.onnx.node import Node

_KINDS = {"ReduceSum": "sum", "ReduceProd": "prod", "ReduceMax": "max", "ReduceMin": "min", "ReduceMean": "avg"}

# The opset from which on the axes are an input.
_AXES_INPUT = {"ReduceSum": 13}


@onnx_op(*_KINDS)
def reduction(net: Network, node: Node) -> Value:
    x = node.input(0)
    axes = _axes(node, x)
    return x if axes is None else _reduced(net, node, _KINDS[node.op_type], x, axes)


@onnx_op("ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSum")
def expanded_reduction(net: Network, node: Node) -> Value:
    """Sums of absolute values or squares, then a root or a logarithm; without axes only the pointwise part remains."""
    given = node.input(0)
    axes = _axes(node, given)
    before = x = layers.widened(net, given)
    if node.op_type == "ReduceL1":
        before = layers.unary(net, "abs", x)
    elif node.op_type in ("ReduceL2", "ReduceSumSquare"):
        before = layers.binary(net, "prod", x, x)
    total = before if axes is None else _reduced(net, node, "sum", before, axes)
    if node.op_type == "ReduceL2":
        total = layers.unary(net, "sqrt", layers.in_float(net, total))
    elif node.op_type == "ReduceLogSum":
        total = layers.unary(net, "log", layers.in_float(net, total))
    return layers.cast(net, total, given.element)


@onnx_op("ReduceLogSumExp")
def log_sum_exp(net: Network, node: Node) -> Value:
    given = node.input(0)
    axes = _axes(node, given)
    return given if axes is None else layers.log_sum_exp(net, given, axes, node.flag("keepdims", True))


def _reduced(net: Network, node: Node, kind: str, x: Value, axes: Sequence[int]) -> Value:
    return layers.reduce(net, kind, x, axes, node.flag("keepdims", True))


def _axes(node: Node, x: Value) -> list[int] | None:
    """The axes from the front; `None` where the op is to do nothing."""
    by_input = node.opset >= _AXES_INPUT.get(node.op_type, 18)
    given = node.known_integers(1, "the axes") if by_input else node.integers("axes", [])
    if not given:
        return None if by_input and node.integer("noop_with_empty_axes", 0) else list(range(x.rank))
    axes = sorted({node.from_front(axis, x.rank) for axis in given})
    return axes if x.rank else []


@onnx_op("ArgMax", "ArgMin")
def arg_extreme(net: Network, node: Node) -> Value:
    """The first position of the extreme, or the last one, which is found from the other end."""
    x = node.input(0)
    axis = node.axis("axis", 0, x.rank)
    last = bool(node.integer("select_last_index", 0))
    searched = layers.reversed_along(net, x, axis) if last else x
    kind = "max" if node.op_type == "ArgMax" else "min"
    _, found = net.emit_many("topk", [searched], 2, kind=kind, k=1, axis=axis)
    found = layers.cast(net, found, "int64")
    if last:
        end = layers.binary(net, "sub", layers.length_of(net, x, axis), net.constant(np.array(1, np.int64)))
        found = layers.binary(net, "sub", end, found)
    return found if node.flag("keepdims", True) else layers.squeeze(net, found, [axis])
