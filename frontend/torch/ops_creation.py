"""Tensors made from numbers: full, arange, ones, triangles."""

from __future__ import annotations

import math

import numpy as np

from mlirt.dialects.symbolic import Dim, Expr
from mlirt.dialects.tensor_types import element_type, numpy_dtype
from mlirt.frontend.importing import layers
from mlirt.frontend.importing.network import Network, Value
from mlirt.frontend.torch.call import Call
from mlirt.frontend.torch.handlers import aten_op


def _base(call: Call) -> str:
    return call.operator.split(".")[1]


@aten_op(
    "full.default",
    "full_like.default",
    "fill.Scalar",
    "zeros.default",
    "zeros_like.default",
    "ones.default",
    "ones_like.default",
    "new_zeros.default",
    "new_ones.default",
    "new_full.default",
    "empty.memory_format",
    "empty_strided.default",
    "empty_like.default",
    "new_empty.default",
    "new_empty_strided.default",
    "empty_permuted.default",
    "scalar_tensor.default",
)
def full(net: Network, call: Call) -> Value:
    """One number everywhere; memory without contents is zeros."""
    names = ("fill_value", "value", "s")
    name = next((name for name in names if name in call.arguments), "")
    if name and isinstance(call.arguments[name], Expr | Value):
        value = call.operand(name, call.element)
    else:
        number = call.arguments[name] if name else int("ones" in call.operator)
        value = net.constant(np.array(number).astype(numpy_dtype(element_type(call.element))))
    sizes = [dim for dim in call.result_dims if isinstance(dim, int)]
    if len(sizes) == len(call.result_dims) and value.array is not None:
        return layers.filled(net, sizes, value.array) if sizes else value
    return layers.expand(net, layers.with_rank(net, value, len(call.result_dims)), call.result_dims)


@aten_op("fill.Tensor")
def filled_with_tensor(net: Network, call: Call) -> Value:
    value = call.operand("value", call.element)
    return layers.expand(net, layers.with_rank(net, value, len(call.result_dims)), call.result_dims)


@aten_op("arange.start_step", "arange.start", "arange.default")
def arange(net: Network, call: Call) -> Value:
    start: Dim | float = call.arguments.get("start", 0)
    step: Dim | float = call.arguments.get("step", 1)
    count = call.result_dims[0]
    if isinstance(start, int | float) and isinstance(step, int | float) and isinstance(count, int):
        whole = isinstance(start, int) and isinstance(step, int)
        line = (start + step * np.arange(count, dtype=np.int64 if whole else np.float64)).astype(
            numpy_dtype(element_type(call.element))
        )
        return net.constant(line)
    place = layers.cast(net, layers.counting(net, "int64", count), call.element)
    if step != 1:
        place = layers.binary(net, "prod", place, call.operand("step", call.element))
    return place if start == 0 else layers.binary(net, "sum", place, call.operand("start", call.element))


@aten_op("linspace.default")
def linspace(net: Network, call: Call) -> Value:
    count = call.integer("steps")
    line = np.linspace(call.real("start"), call.real("end"), count)
    return net.constant(line.astype(numpy_dtype(element_type(call.element))))


@aten_op("eye.default", "eye.m")
def eye(net: Network, call: Call) -> Value:
    rows, columns = call.result_dims
    if not isinstance(rows, int) or not isinstance(columns, int):
        raise call.unsupported("its lengths must be known when the engine is built")
    return net.constant(np.eye(rows, columns).astype(numpy_dtype(element_type(call.element))))


@aten_op("tril.default", "triu.default")
def triangle(net: Network, call: Call) -> Value:
    x = call.value("self")
    diagonal = net.constant(np.array(call.integer("diagonal"), np.int64))
    if x.array is not None and math.prod(x.array.shape) <= layers.MAX_COUNT:
        cut = np.triu if _base(call) == "triu" else np.tril
        return net.constant(cut(x.array, call.integer("diagonal")))
    return layers.triangle(net, x, diagonal, upper=_base(call) == "triu")
