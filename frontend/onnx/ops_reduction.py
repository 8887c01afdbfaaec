"""Reductions over axes, and the position of the largest or smallest element."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias

import numpy as np

from mlirt.dialects.tensor_types import is_float
from mlirt.frontend.importing import layers
from mlirt.frontend.importing.data_dependent_sizes import number
from mlirt.frontend.importing.network import Network, Value
from mlirt.frontend.onnx.handlers import onnx_op
from mlirt.frontend.onnx.node import Node
from mlirt.frontend.onnx.run_time_axes import are_of_run, around, axes_of_run, lengths_of, shaped, with_length, without

_KINDS = {"ReduceSum": "sum", "ReduceProd": "prod", "ReduceMax": "max", "ReduceMin": "min", "ReduceMean": "avg"}

# The opset from which on the axes are an input.
_AXES_INPUT = {"ReduceSum": 13}


Reduction: TypeAlias = "Callable[[Value, Sequence[int], bool], Value]"
"""What reduces a tensor along axes, which it keeps with length 1 or drops."""


@onnx_op(*_KINDS)
def reduction(net: Network, node: Node) -> Value:
    x, kind = node.input(0), _KINDS[node.op_type]
    if kind == "avg" and _are_of_run(node, x):
        return _mean_of_run(net, node, x)
    return _along(net, node, x, partial(layers.reduce, net, kind))


@onnx_op("ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSum")
def expanded_reduction(net: Network, node: Node) -> Value:
    """Sums of absolute values or squares, then a root or a logarithm; without axes only the pointwise part remains."""
    given = node.input(0)
    before = x = layers.widened(net, given)
    if node.op_type == "ReduceL1":
        before = layers.unary(net, "abs", x)
    elif node.op_type in ("ReduceL2", "ReduceSumSquare"):
        before = layers.binary(net, "prod", x, x)
    total = _along(net, node, before, partial(layers.reduce, net, "sum"))
    if node.op_type == "ReduceL2":
        total = layers.unary(net, "sqrt", layers.in_float(net, total))
    elif node.op_type == "ReduceLogSum":
        total = layers.unary(net, "log", layers.in_float(net, total))
    return layers.cast(net, total, given.element)


@onnx_op("ReduceLogSumExp")
def log_sum_exp(net: Network, node: Node) -> Value:
    return _along(net, node, node.input(0), partial(layers.log_sum_exp, net))


def _along(net: Network, node: Node, x: Value, reduce: Reduction) -> Value:
    """The reduction along the node's axes; the tensor itself where the node is to do nothing."""
    if _are_of_run(node, x):
        return _along_axes_of_run(net, node, x, reduce)[0]
    axes = _axes(node, x)
    return x if axes is None else reduce(x, axes, node.flag("keepdims", True))


def _along_axes_of_run(net: Network, node: Node, x: Value, reduce: Reduction) -> tuple[Value, Value]:
    """One axis after the other, and how many elements come together in one."""
    keeps = node.flag("keepdims", True)
    axes = axes_of_run(net, node, 1, x.rank, distinct=not keeps)
    whole = layers.widened(net, x) if len(axes) > 1 else x
    lengths, count = lengths_of(net, x), number(net, 1)
    for axis in axes:
        whole = around(net, node, whole, lengths, axis)
        count = layers.binary(net, "prod", count, layers.length_of(net, whole, 1))
        whole = reduce(whole, [1], False)
        lengths = with_length(net, lengths, axis, number(net, 1))
    result = shaped(net, node, whole, lengths if keeps else without(net, lengths, axes))
    return layers.cast(net, result, x.element), count


def _mean_of_run(net: Network, node: Node, x: Value) -> Value:
    """A sum that is divided once, as the mean of rounded means is another number; integers round toward zero."""
    wide = layers.widened(net, x) if is_float(x.element) else layers.cast(net, x, "int64")
    total, count = _along_axes_of_run(net, node, wide, partial(layers.reduce, net, "sum"))
    if not is_float(x.element):
        count = layers.binary(net, "max", count, number(net, 1))
    mean = layers.binary(net, "div", total, layers.cast(net, count, total.element))
    return layers.cast(net, mean, x.element)


def _are_of_run(node: Node, x: Value) -> bool:
    return _has_axes_input(node) and x.rank > 0 and are_of_run(node, 1)


def _has_axes_input(node: Node) -> bool:
    return node.opset >= _AXES_INPUT.get(node.op_type, 18)


def _axes(node: Node, x: Value) -> list[int] | None:
    """The axes from the front; `None` where the op is to do nothing."""
    by_input = _has_axes_input(node)
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
