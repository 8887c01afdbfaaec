"""Values that stand in the model: constants, fills, ranges, unit matrices."""

from __future__ import annotations

import math

import numpy as np

from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_types import is_float
from mlirt.frontend.importing import layers
from mlirt.frontend.importing.data_dependent_sizes import number, size_of, sizes_of
from mlirt.frontend.importing.network import Network, Value
from mlirt.frontend.onnx.handlers import onnx_op
from mlirt.frontend.onnx.narrow_types import NARROW_TYPES
from mlirt.frontend.onnx.node import Node, scalar
from mlirt.frontend.onnx.tensor_reader import dtype, element_name

MAX_RANGE = 1 << 26


@onnx_op("Constant")
def constant(net: Network, node: Node) -> Value:
    if node.has("value"):
        value = net.constant(node.tensor("value"))
        value.narrow = NARROW_TYPES.get(node.attributes["value"].t.data_type)
        return value
    if node.has("value_float"):
        return net.constant(np.array(node.real("value_float"), np.float32))
    if node.has("value_floats"):
        return net.constant(np.array(node.reals("value_floats"), np.float32))
    if node.has("value_int"):
        return net.constant(np.array(node.integer("value_int"), np.int64))
    if node.has("value_ints"):
        return net.constant(np.array(node.integers("value_ints"), np.int64))
    given = sorted(node.attributes)
    if not given:
        raise node.invalid("expected an attribute with its value, but there is none")
    raise node.unsupported(f"a constant given as {', '.join(given)}; give it as a dense tensor")


@onnx_op("ConstantOfShape")
def constant_of_shape(net: Network, node: Node) -> Value:
    value = node.tensor("value").reshape(-1) if node.has("value") else np.zeros(1, np.float32)
    if value.size != 1:
        raise node.invalid(f"expected a value of one element, got {value.size}")
    return filled(net, node, node.known_dims(0), net.constant(value))


def filled(net: Network, node: Node, dims: list[Dim | None] | None, value: Value) -> Value:
    """`value`, which has one element, repeated to these dimensions."""
    if dims is None or None in dims:
        dims = list(sizes_of(net, node, node.input(0)))
    sizes = [dim for dim in dims if dim is not None]
    if any(isinstance(size, int) and size < 0 for size in sizes):
        raise node.invalid(f"the shape {[str(size) for size in sizes]} has a negative length")
    numbers = [size for size in sizes if isinstance(size, int)]
    if len(numbers) == len(sizes) and value.array is not None:
        return layers.filled(net, numbers, value.array)
    return layers.expand(net, layers.reshape(net, value, [1] * len(sizes)), sizes)


@onnx_op("Range")
def range_(net: Network, node: Node) -> Value:
    bounds = [node.input(k).array for k in range(3)]
    if any(bound is None for bound in bounds):
        return _counted(net, node)
    start, limit, step = (scalar(bound) for bound in bounds if bound is not None)
    if step == 0:
        raise node.invalid("the step is 0")
    count = max(math.ceil((limit - start) / step), 0)
    if count > MAX_RANGE:
        raise node.invalid(f"it would make {count} elements")
    kind = dtype(node.input(0).element_name)
    return net.constant((start + np.arange(count) * step).astype(kind))


def _counted(net: Network, node: Node) -> Value:
    """From one dynamic length to another, such as the words behind those in a cache."""
    dims = [node.known_dims(k) for k in range(3)]
    start, limit, step = (None if dim is None else dim[0] for dim in dims)
    if start is None or limit is None or not isinstance(step, int) or step == 0:
        return _counted_at_run_time(net, node)
    count, element = layers.range_length(start, limit, step), node.input(0).element_name
    if isinstance(start, int):
        return layers.counting(net, element, count, start, step)
    places = layers.counting(net, element, count, step=step)
    return layers.binary(net, "sum", layers.reshape(net, node.input(0), []), places)


def _counted_at_run_time(net: Network, node: Node) -> Value:
    """start + step * (0, 1, ..) where the run computes the three; the number of elements becomes a symbol."""
    start, limit, step = (layers.reshape(net, node.input(k), []) for k in range(3))
    exact = "float64" if is_float(start.element) else "int64"
    low, high, apart = (layers.cast(net, value, exact) for value in (start, limit, step))
    span = layers.binary(net, "sub", high, low)
    # Rounded up, as the rounded down quotient of the negated span.
    steps = layers.binary(net, "floor_div", layers.unary(net, "neg", span), apart)
    count = layers.cast(net, layers.unary(net, "neg", steps), "int64")
    length = size_of(net, layers.binary(net, "max", count, number(net, 0)), node.name)
    place = layers.cast(net, layers.counting(net, "int64", length), start.element)
    return layers.binary(net, "sum", start, layers.binary(net, "prod", place, step))


@onnx_op("EyeLike")
def eye_like(net: Network, node: Node) -> Value:
    x, diagonal = node.input(0), node.integer("k", 0)
    if x.rank != 2:
        raise node.invalid(f"expected a matrix, got {x.type}")
    rows, columns = x.dims
    name = element_name(node.integer("dtype"), node.label) if node.has("dtype") else x.element_name
    if not isinstance(rows, int) or not isinstance(columns, int):
        own = layers.reshape(net, layers.counting(net, "int64", rows, start=diagonal), [rows, 1])
        across = layers.reshape(net, layers.counting(net, "int64", columns), [1, columns])
        return layers.cast(net, layers.binary(net, "equal", own, across), name)
    if rows * columns > MAX_RANGE:
        raise node.invalid(f"it would make {rows} x {columns} elements")
    return net.constant(np.eye(rows, columns, diagonal).astype(dtype(name)))
