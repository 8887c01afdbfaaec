"""Ops that rank, mark or accumulate elements: TopK, Hardmax, OneHot, Trilu, CumSum."""

from __future__ import annotations

from collections.abc import Sequence

from mlirt.dialects.length_requirements import equal
from mlirt.dialects.symbolic import Dim, product
from mlirt.dialects.trt.require import RequireOp
from mlirt.frontend.importing import layers
from mlirt.frontend.importing.data_dependent_sizes import clamped, number, require_lengths, size_of
from mlirt.frontend.importing.network import Network, Value
from mlirt.frontend.onnx.handlers import onnx_op
from mlirt.frontend.onnx.node import Node
from mlirt.frontend.onnx.run_time_axes import are_of_run, axes_of_run, count_of_axes


@onnx_op("TopK")
def top_k(net: Network, node: Node) -> Sequence[Value]:
    x = node.input(0)
    axis = node.axis("axis", -1, x.rank)
    length, count = x.dims[axis], _count(net, node, x, axis)
    if isinstance(count, int) and (count < 0 or (isinstance(length, int) and count > length)):
        raise node.invalid(f"expected k from 0 to the length {length}, got {count}")
    kind = "max" if node.integer("largest", 1) else "min"
    k = {"k": count} if isinstance(count, int) else {"size": [count]}
    values, indices = net.emit_many("topk", [x], 2, kind=kind, axis=axis, sorted=bool(node.integer("sorted", 1)), **k)
    return [values, layers.cast(net, indices, "int64")]


def _count(net: Network, node: Node, x: Value, axis: int) -> Dim:
    """k: a number, an expression of the inputs' dimensions, or what the run computes and then checks."""
    if node.opset < 10:
        return node.integer("k")
    (known,) = node.known_dims(1) or [None]
    if known is not None:
        return known
    wanted = layers.reshape(net, layers.cast(net, node.input(1), "int64"), [])
    length = layers.length_of(net, x, axis)
    fits = layers.binary(net, "equal", clamped(net, wanted, number(net, 0), length), wanted)
    net.append_at(RequireOp(net.ssa(fits), f"{node.label}: k is not between 0 and the length of axis {axis}"))
    return size_of(net, wanted, node.name)


@onnx_op("Hardmax")
def hardmax(net: Network, node: Node) -> Value:
    """1 at the first of the largest elements, else 0; before opset 13 over all dimensions from `axis` on."""
    x = node.input(0)
    axis = node.axis("axis", -1 if node.opset >= 13 else 1, x.rank)
    if node.opset >= 13:
        return layers.first_largest(net, x, axis)
    flat = layers.reshape(net, x, [product(x.dims[:axis]), product(x.dims[axis:])])
    return layers.reshape(net, layers.first_largest(net, flat, 1), x.dims)


@onnx_op("Trilu")
def trilu(net: Network, node: Node) -> Value:
    """The upper (or lower) triangle from diagonal `k` on; zeros elsewhere."""
    x = node.input(0)
    if x.rank < 2:
        raise node.invalid(f"expected an input of at least 2 dimensions, but it has {x.rank}")
    return layers.triangle(net, x, _diagonal(net, node), upper=bool(node.integer("upper", 1)))


@onnx_op("OneHot")
def one_hot(net: Network, node: Node) -> Value:
    """`on` where the position along the new axis is the index, else `off`; negative indices count from the end."""
    indices, count, values = node.input(0), _depth(net, node), node.input(2)
    if isinstance(count, int) and count < 1:
        raise node.invalid(f"expected a positive depth, got {count}")
    require_lengths(net, node, equal("", "", 2, values.dims[0], "expected {left} values, got {right}"))
    axis = node.axis("axis", -1, indices.rank + 1)
    whole = layers.unsqueeze(net, layers.cast(net, indices, "int64"), [axis])
    depth = layers.cast(net, node.input(1), "int64")
    wrapped = layers.binary(net, "sum", whole, layers.reshape(net, depth, [1] * whole.rank))
    negative = layers.binary(net, "less", whole, layers.scalar_like(net, 0, whole))
    shape = [count if k == axis else 1 for k in range(whole.rank)]
    positions = layers.reshape(net, layers.counting(net, "int64", count), shape)
    hit = layers.binary(net, "equal", layers.select(net, negative, wrapped, whole), positions)
    off, on = (layers.along(net, values, 0, k, 1) for k in range(2))
    return layers.select(net, hit, on, off)


def _depth(net: Network, node: Node) -> Dim:
    """A number, an expression of the inputs' dimensions, or what the run computes."""
    known = node.known_dims(1)
    if known is not None and len(known) == 1 and known[0] is not None:
        return known[0]
    depth = layers.reshape(net, layers.cast(net, node.input(1), "int64"), [])
    return size_of(net, layers.binary(net, "max", depth, number(net, 0)), node.name)


def _diagonal(net: Network, node: Node) -> Value:
    """The number of the diagonal, limited to what sums do not overflow with."""
    given = node.optional(1)
    if given is None:
        return number(net, 0)
    limit = 1 << 40
    return clamped(net, layers.reshape(net, given, []), number(net, -limit), number(net, limit))


@onnx_op("CumSum", "CumProd")
def cumulative(net: Network, node: Node) -> Value:
    x = node.input(0)
    if are_of_run(node, 1) and count_of_axes(node, 1) == 1:
        (axis,) = axes_of_run(net, node, 1, x.rank)
        return _cumulative_at_run_time(net, node, x, axis)
    axes = node.known_integers(1, "the axis")
    if axes is None or len(axes) != 1:
        raise node.invalid(f"expected one axis, got {axes}")
    return _cumulative(net, node, x, node.from_front(axes[0], x.rank))


def _cumulative_at_run_time(net: Network, node: Node, x: Value, axis: Value) -> Value:
    """All axes, of which the run chooses one: so the lengths of the result are those of `x`."""
    found = _cumulative(net, node, x, 0)
    for place in range(1, x.rank):
        is_place = layers.binary(net, "equal", axis, number(net, place))
        found = layers.select(net, is_place, _cumulative(net, node, x, place), found)
    return found


def _cumulative(net: Network, node: Node, x: Value, axis: int) -> Value:
    return net.emit(
        "cumulative",
        [x],
        kind="sum" if node.op_type == "CumSum" else "prod",
        axis=axis,
        exclusive=bool(node.integer("exclusive", 0)),
        reverse=bool(node.integer("reverse", 0)),
    )
