"""Running maxima, minima and logarithms of sums of exponentials; running sums and products are in ops_reduction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from mlirt.dialects.tensor_types import is_float
from mlirt.frontend.importing import layers
from mlirt.frontend.importing.network import Network, Value
from mlirt.frontend.torch.call import Call
from mlirt.frontend.torch.handlers import aten_op
from mlirt.frontend.torch.neutral_numbers import neutral_number

Reduction: TypeAlias = "Callable[[Network, Value, int], Value]"
"""Of one axis, which stays with the length 1."""


@aten_op("cummax.default", "cummin.default")
def running_extreme(net: Network, call: Call) -> Sequence[Value]:
    """The largest or least element so far, and the last place where it was."""
    x, kind = call.value("self"), "max" if "cummax" in call.operator else "min"
    if x.rank == 0:
        return [x, layers.scalar_like(net, 0, layers.cast(net, x, "int64"))]
    axis = call.axis("dim", x.rank)
    numbers = layers.cast(net, x, "int32") if x.element_name == "bool" else x
    found = _running(net, numbers, axis, _extreme(kind), kind)
    is_new = layers.binary(net, "equal", numbers, found)
    if is_float(numbers.element):
        is_new = layers.binary(net, "or", is_new, layers.unary(net, "isnan", numbers))
    shape = [x.dims[axis] if k == axis else 1 for k in range(x.rank)]
    place = layers.reshape(net, layers.counting(net, "int64", x.dims[axis]), shape)
    places = layers.select(net, is_new, place, layers.scalar_like(net, 0, place))
    return [layers.cast(net, found, x.element), _running(net, places, axis, _extreme("max"), "max")]


@aten_op("logcumsumexp.default", "_logcumsumexp.default")
def running_log_sum_exp(net: Network, call: Call) -> Value:
    """log of the sum of the exponentials so far."""
    x = call.value("self")
    if x.rank == 0:
        return x
    wide = layers.widened(net, x)
    found = _running(net, wide, call.axis("dim", x.rank), _log_sum_exp, "max")
    return layers.cast(net, found, x.element)


def _extreme(kind: str) -> Reduction:
    return lambda net, x, axis: layers.reduce(net, kind, x, [axis])


def _log_sum_exp(net: Network, x: Value, axis: int) -> Value:
    return layers.log_sum_exp(net, x, [axis])


def _running(net: Network, x: Value, axis: int, reduction: Reduction, neutral: str) -> Value:
    """The reduction of all elements up to each: by doubling steps, or over a triangle where the length is not known."""
    length = x.dims[axis]
    if not isinstance(length, int):
        return _over_triangle(net, x, axis, reduction, neutral)
    step = 1
    while step < length:
        late, early = layers.along(net, x, axis, step, length - step), layers.along(net, x, axis, 0, length - step)
        pair = layers.concatenate(net, [layers.unsqueeze(net, part, [axis]) for part in (early, late)], axis)
        joined = layers.squeeze(net, reduction(net, pair, axis), [axis])
        x = layers.concatenate(net, [layers.along(net, x, axis, 0, step), joined], axis)
        step *= 2
    return x


def _over_triangle(net: Network, x: Value, axis: int, reduction: Reduction, neutral: str) -> Value:
    """Row i of a matrix has the elements up to i, and what changes nothing behind them."""
    length, behind = x.dims[axis], x.rank - axis - 1
    rows = layers.reshape(net, layers.counting(net, "int64", length), [length, 1, *[1] * behind])
    columns = layers.reshape(net, rows, [1, length, *[1] * behind])
    spread = layers.unsqueeze(net, x, [axis])
    is_before = layers.binary(net, "less_equal", columns, rows)
    masked = layers.select(net, is_before, spread, neutral_number(net, neutral, spread))
    return layers.squeeze(net, reduction(net, masked, axis + 1), [axis + 1])
