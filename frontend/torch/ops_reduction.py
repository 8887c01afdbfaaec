"""Reductions over axes: sums, means, extremes and where they are, variances, running sums."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mlirt.dialects.symbolic import product
from mlirt.dialects.tensor_types import is_bool
from mlirt.frontend.importing import layers
from mlirt.frontend.importing.network import Network, Value
from mlirt.frontend.torch.call import Call
from mlirt.frontend.torch.handlers import aten_op
from mlirt.frontend.torch.truth_values import as_bool

_KINDS = {"sum": "sum", "mean": "avg", "prod": "prod", "amax": "max", "amin": "min"}


def _base(call: Call) -> str:
    return call.operator.split(".")[1]


def _axes(call: Call, x: Value) -> list[int]:
    """All axes where none are given; a tensor without dimensions has none, whatever PyTorch lets one ask for."""
    return call.axes("dim", x.rank) if x.rank and call.given("dim") else list(range(x.rank))


def _keeps(call: Call) -> bool:
    return bool(call.arguments.get("keepdim", False))


@aten_op(
    "sum.default",
    "sum.dim_IntList",
    "mean.default",
    "mean.dim",
    "prod.default",
    "prod.dim_int",
    "amax.default",
    "amin.default",
    "max.default",
    "min.default",
)
def reduction(net: Network, call: Call) -> Value:
    x = call.operand("self", call.element)
    kind = _KINDS.get(_base(call), _base(call))
    axes = _axes(call, x)
    if kind in ("sum", "avg"):
        wide = layers.widened(net, x)
        return layers.cast(net, layers.reduce(net, kind, wide, axes, _keeps(call)), call.element)
    return layers.reduce(net, kind, x, axes, _keeps(call))


@aten_op("any.default", "any.dim", "any.dims", "all.default", "all.dim", "all.dims")
def any_or_all(net: Network, call: Call) -> Value:
    x = as_bool(net, call.value("self"))
    return layers.reduce(net, "max" if _base(call) == "any" else "min", x, _axes(call, x), _keeps(call))


@aten_op("var.correction", "var.dim", "std.correction", "std.dim")
def variance(net: Network, call: Call) -> Value:
    """The mean square distance from the mean, over the count less the correction."""
    mean, spread = _moments(net, call)
    del mean
    return layers.unary(net, "sqrt", spread) if _base(call) == "std" else spread


@aten_op("var_mean.correction")
def variance_and_mean(net: Network, call: Call) -> Sequence[Value]:
    mean, spread = _moments(net, call)
    return [spread, mean]


def _moments(net: Network, call: Call) -> tuple[Value, Value]:
    given = call.value("self")
    x, axes = layers.widened(net, given), _axes(call, given)
    correction = float(call.flag("unbiased")) if "unbiased" in call.arguments else _correction(call)
    count = product([x.dims[axis] for axis in axes])
    mean = layers.reduce(net, "avg", x, axes)
    centred = layers.binary(net, "sub", x, mean)
    squares = layers.binary(net, "prod", centred, centred)
    if correction == 0:
        spread = layers.reduce(net, "avg", squares, axes)
    else:
        total = layers.reduce(net, "sum", squares, axes)
        rest = layers.cast(net, call.size_value(count), total.element)
        rest = layers.binary(net, "sub", rest, net.constant(np.array(correction, layers.numpy_dtype(total.element))))
        rest = layers.binary(net, "max", rest, layers.scalar_like(net, 0, rest))
        spread = layers.binary(net, "div", total, rest)
    found = (mean, spread) if _keeps(call) else tuple(layers.squeeze(net, part, axes) for part in (mean, spread))
    first, second = (layers.cast(net, part, given.element) for part in found)
    return first, second


def _correction(call: Call) -> float:
    return call.real("correction") if call.given("correction") else 1.0


@aten_op("max.dim", "min.dim")
def extreme_and_place(net: Network, call: Call) -> Sequence[Value]:
    x = call.value("self")
    if x.rank == 0:
        return [x, net.constant(np.array(0, np.int64))]
    axis = call.axis("dim", x.rank)
    if 1 in call.unread:
        return [layers.reduce(net, _base(call), x, [axis], _keeps(call))]
    numbers = layers.cast(net, x, "int8") if is_bool(x.element) else x
    values, indices = net.emit_many("topk", [numbers], 2, kind=_base(call), k=1, axis=axis)
    found = [layers.cast(net, values, x.element), layers.cast(net, indices, "int64")]
    return found if _keeps(call) else [layers.squeeze(net, value, [axis]) for value in found]


@aten_op("argmax.default", "argmin.default")
def place_of_extreme(net: Network, call: Call) -> Value:
    x = call.value("self")
    if not call.given("dim"):
        x = layers.reshape(net, x, [product(x.dims)])
    axis = call.axis("dim", x.rank) if call.given("dim") else 0
    kind = "max" if _base(call) == "argmax" else "min"
    found = layers.cast(net, net.emit_many("topk", [x], 2, kind=kind, k=1, axis=axis)[1], "int64")
    return layers.reshape(net, found, call.result_dims)


@aten_op("logsumexp.default")
def log_sum_exp(net: Network, call: Call) -> Value:
    x = call.operand("self", call.element)
    return layers.log_sum_exp(net, x, _axes(call, x), _keeps(call))


@aten_op("cumsum.default", "cumprod.default")
def cumulative(net: Network, call: Call) -> Value:
    x = call.operand("self", call.element)
    if x.rank == 0:
        return x
    kind = "sum" if _base(call) == "cumsum" else "prod"
    return net.emit("cumulative", [x], kind=kind, axis=call.axis("dim", x.rank))
