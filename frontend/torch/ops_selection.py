"""Operators that order elements, or look for places in an order: topk, sort, searchsorted."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mlirt.dialects.symbolic import Dim
from mlirt.frontend.importing import layers
from mlirt.frontend.importing.network import Network, Value
from mlirt.frontend.torch.call import Call
from mlirt.frontend.torch.handlers import aten_op


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
