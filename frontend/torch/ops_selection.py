"""Operators that order elements, or look for places in an order: topk, sort, searchsorted."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from mlirt.dialects.symbolic import Dim, product
from mlirt.dialects.tensor_types import is_float
from mlirt.frontend.importing import layers
from mlirt.frontend.importing.network import Network, Value
from mlirt.frontend.torch.call import Call
from mlirt.frontend.torch.handlers import aten_op
from mlirt.frontend.torch.symbolic_numbers import size_value


@aten_op("topk.default")
def top_k(net: Network, call: Call) -> Sequence[Value]:
    count: Dim = call.arguments["k"]
    return _ranked(net, call, "max" if call.flag("largest") else "min", count)


@aten_op("sort.default", "sort.stable")
def sort(net: Network, call: Call) -> Sequence[Value]:
    x = call.value("self")
    length = x.dims[call.axis("dim", x.rank)] if x.rank else 1
    return _ranked(net, call, "max" if call.flag("descending") else "min", length)


@aten_op("argsort.default", "argsort.stable")
def argsort(net: Network, call: Call) -> Value:
    return sort(net, call)[1]


@aten_op("kthvalue.default")
def kth_value(net: Network, call: Call) -> Sequence[Value]:
    """The k-th of the smallest numbers along an axis, and where it is."""
    count = call.integer("k")
    return _last_of(net, call, _ranked(net, call, "min", count), count - 1)


@aten_op("median.default", "median.dim", "nanmedian.default", "nanmedian.dim")
def median(net: Network, call: Call) -> Value | Sequence[Value]:
    """The middle one of an axis or of all elements, the lower of two; numbers alone, or not-a-number where one is."""
    given = call.value("self")
    if "dim" not in call.arguments:
        flat = layers.reshape(net, given, [product(given.dims)])
        values, _ = _middle(net, flat, 0, skips="nan" in call.operator)
        return layers.reshape(net, values, [])
    x = given if given.rank else layers.reshape(net, given, [1])
    axis = call.axis("dim", x.rank)
    found = _middle(net, x, axis, skips="nan" in call.operator)
    if given.rank == 0:
        return [layers.reshape(net, one, []) for one in found]
    return list(found) if call.flag("keepdim") else [layers.squeeze(net, one, [axis]) for one in found]


def _middle(net: Network, x: Value, axis: int, *, skips: bool) -> tuple[Value, Value]:
    """The middle of an axis, which stays with length 1, and its place; not-a-number is left out or wins."""
    length = x.dims[axis]
    is_nan = layers.unary(net, "isnan", x) if is_float(x.element) else None
    ranked = layers.select(net, is_nan, layers.scalar_like(net, math.inf, x), x) if is_nan is not None else x
    many = {"k": length} if isinstance(length, int) else {"size": [length]}
    values, places = net.emit_many("topk", [ranked], 2, kind="min", axis=axis, sorted=True, **many)
    count = layers.reduce(net, "sum", layers.cast(net, _numbers(net, x), "int64"), [axis])
    if not skips:
        count = layers.binary(net, "max", count, layers.cast(net, size_value(net, length), "int64"))
    half = layers.binary(net, "sub", count, layers.scalar_like(net, 1, count))
    half = layers.binary(net, "floor_div", half, layers.scalar_like(net, 2, half))
    half = layers.binary(net, "max", half, layers.scalar_like(net, 0, half))
    value, place = (net.emit("gather", [one, half], mode="element", axis=axis) for one in (values, places))
    if is_nan is not None:
        counted = layers.cast(net, is_nan, "int64")
        # Without numbers, or where one counts that is none, there is no middle.
        lost = layers.reduce(net, "min" if skips else "max", counted, [axis])
        lost = layers.binary(net, "greater", lost, layers.scalar_like(net, 0, lost))
        value = layers.select(net, lost, layers.scalar_like(net, math.nan, value), value)
        first = net.emit_many("topk", [layers.cast(net, is_nan, "float32")], 2, kind="max", k=1, axis=axis)[1]
        place = layers.select(net, lost, layers.cast(net, first, place.element), place)
    return value, layers.cast(net, place, "int64")


def _numbers(net: Network, x: Value) -> Value:
    """Which elements are numbers."""
    return layers.binary(net, "equal", x, x)


def _last_of(net: Network, call: Call, ranked: Sequence[Value], place: int) -> Sequence[Value]:
    x = call.value("self")
    if x.rank == 0:
        return ranked
    axis = call.axis("dim", x.rank)
    found = [layers.along(net, one, axis, place, 1) for one in ranked]
    return found if call.flag("keepdim") else [layers.squeeze(net, one, [axis]) for one in found]


def _ranked(net: Network, call: Call, kind: str, count: Dim) -> Sequence[Value]:
    x = call.value("self")
    if x.rank == 0:
        return [x, net.constant(np.array(0, np.int64))]
    many = {"k": count} if isinstance(count, int) else {"size": [count]}
    numbers = layers.cast(net, x, "int8") if x.element_name == "bool" else x
    values, indices = net.emit_many("topk", [numbers], 2, kind=kind, axis=call.axis("dim", x.rank), sorted=True, **many)
    return [layers.cast(net, values, x.element), layers.cast(net, indices, "int64")]


@aten_op("searchsorted.Tensor", "searchsorted.Scalar")
def search_sorted(net: Network, call: Call) -> Value:
    """Before which element of each row a number stands: as many as are smaller, or not larger on the right side."""
    rows = call.value("sorted_sequence")
    element = call.promoted(["sorted_sequence", "self"])
    sorter = call.optional("sorter")
    if sorter is not None:
        rows = net.emit("gather", [rows, sorter], mode="element", axis=rows.rank - 1)
    is_right = call.flag("right") or call.arguments.get("side") == "right"
    wanted = call.operand("self", element)
    return _places(net, call, layers.cast(net, rows, element), wanted, is_right=is_right)


@aten_op("bucketize.Tensor", "bucketize.Scalar")
def bucket(net: Network, call: Call) -> Value:
    """The same with borders for all; `right` says that a number which is a border belongs behind it."""
    element = call.promoted(["boundaries", "self"])
    rows = layers.cast(net, call.value("boundaries"), element)
    return _places(net, call, rows, call.operand("self", element), is_right=call.flag("right"))


def _places(net: Network, call: Call, rows: Value, wanted: Value, *, is_right: bool) -> Value:
    """Counts what a number stands behind; not-a-number stands behind all."""
    numbers = layers.unsqueeze(net, wanted, [wanted.rank])
    # One row is for all numbers, whatever their shape; else there is a row for each line of them.
    borders = rows if rows.rank == 1 else layers.unsqueeze(net, rows, [rows.rank - 1])
    kind = "greater" if is_right else "greater_equal"
    behind = layers.unary(net, "not", layers.binary(net, kind, *layers.aligned(net, [borders, numbers])))
    counted = layers.cast(net, behind, "int64")
    found = layers.reduce(net, "sum", counted, [counted.rank - 1], keep_dims=False)
    return layers.cast(net, found, call.element)
