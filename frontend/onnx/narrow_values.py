"""Conversions from and to narrow element types, as layers on what they are stored in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from xdsl.ir import Attribute

from mlirt.dialects.tensor_types import is_float
from mlirt.frontend.importing import layers
from mlirt.frontend.importing.narrow_type import INFINITELY_SCALED, NarrowType
from mlirt.frontend.importing.network import Network, Value
from mlirt.frontend.onnx.narrow_types import rounding_table, values_of_codes

if TYPE_CHECKING:
    from mlirt.frontend.onnx.node import Node

# Ops that know narrow types, ops that only move elements of their first input, and ops that do not look at them.
_CONVERSIONS = frozenset({"Cast", "CastLike", "QuantizeLinear", "DequantizeLinear"})
_MOVES = frozenset(
    {
        "Identity",
        "Reshape",
        "Flatten",
        "Transpose",
        "Squeeze",
        "Unsqueeze",
        "Slice",
        "Split",
        "Gather",
        "Expand",
        "Concat",
    }
)
_OF_SHAPES = frozenset({"Shape", "Size"})
_OF_OTHER_DOMAINS = frozenset({"GatherBlockQuantized"})


def check_narrow_inputs(node: Node) -> None:
    """Raise where an op would take what numbers are stored in for the numbers."""
    found = {value.narrow.name for value in node.inputs if value is not None and value.narrow is not None}
    mixed = node.op_type in _MOVES and len({value.narrow for value in [node.input(0), *_joined(node)]}) > 1
    known = _OF_OTHER_DOMAINS if node.domain else _CONVERSIONS | _MOVES | _OF_SHAPES
    if INFINITELY_SCALED.name in found and node.op_type not in {"DequantizeLinear"} | _MOVES | _OF_SHAPES:
        raise node.unsupported("it reads integers whose scale is infinite, which only DequantizeLinear can")
    if found and (mixed or node.op_type not in known):
        names = " and ".join(sorted(found))
        raise node.unsupported(f"it reads the element type {names}; cast it to float32 or int8 before")


def _joined(node: Node) -> list[Value]:
    return node.present() if node.op_type == "Concat" else []


def with_narrow_types(node: Node, results: Sequence[Value]) -> Sequence[Value]:
    """The results of an op that moves elements have the type of its first input."""
    kind = node.inputs[0].narrow if node.inputs and node.inputs[0] is not None else None
    if kind is None or node.op_type not in _MOVES:
        return results
    return [as_narrow(value, kind) for value in results]


def as_narrow(value: Value, kind: NarrowType) -> Value:
    """The same tensor, known to hold numbers of a narrow type."""
    return replace(value, narrow=kind)


def widened(net: Network, x: Value, element: Attribute | str) -> Value:
    """The numbers of a narrow tensor in another element type."""
    assert x.narrow is not None
    plain = replace(x, narrow=None)
    if not x.narrow.is_integer and not x.narrow.is_kept:
        plain = net.emit("gather", [net.constant(values_of_codes(x.narrow)), plain], mode="default", axis=0)
    return layers.cast(net, plain, element)


def narrowed(net: Network, x: Value, kind: NarrowType, saturate: bool = True) -> Value:
    """Numbers rounded to a narrow type; integers drop the digits behind the point and wrap, as all casts do."""
    if x.narrow is not None:
        x = widened(net, x, "float32")
    if kind.is_kept:
        return as_narrow(layers.cast(net, x if saturate else _unless_too_large(net, x, kind), kind.storage), kind)
    return as_narrow(_wrapped(net, x, kind) if kind.is_integer else _coded(net, x, kind, saturate), kind)


def clipped(net: Network, x: Value, kind: NarrowType) -> Value:
    """Whole numbers limited to the range of a narrow integer type."""
    low, high = kind.limits()
    return as_narrow(layers.cast(net, layers.activation(net, "clip", x, low, high), kind.storage), kind)


def _wrapped(net: Network, x: Value, kind: NarrowType) -> Value:
    low, high = kind.limits()
    whole = layers.cast(net, x, "int32")
    from_low = layers.binary(net, "sub", whole, layers.scalar_like(net, low, whole))
    rest = layers.binary(net, "mod", from_low, layers.scalar_like(net, high - low + 1, whole))
    return layers.cast(net, layers.binary(net, "sum", rest, layers.scalar_like(net, low, whole)), kind.storage)


def _unless_too_large(net: Network, x: Value, kind: NarrowType) -> Value:
    """Not-a-number of its sign in place of what rounding brings beyond the largest number, which conversions give."""
    x = layers.cast(net, x, "float32") if is_float(x.element) else layers.in_float(net, x)
    limit = float(rounding_table(kind, saturate=False).thresholds[-1])
    size = layers.unary(net, "abs", x)
    beyond = layers.binary(net, "greater", size, layers.scalar_like(net, limit, x))
    kept = layers.select(net, beyond, layers.scalar_like(net, float("nan"), x), size)
    return layers.select(net, _is_negative(net, x), layers.unary(net, "neg", kept), kept)


def _coded(net: Network, x: Value, kind: NarrowType, saturate: bool) -> Value:
    table = rounding_table(kind, saturate)
    x = layers.cast(net, x, "float32") if is_float(x.element) else layers.in_float(net, x)
    size = layers.unsqueeze(net, layers.unary(net, "abs", x), [x.rank])
    limits = net.constant(table.thresholds.reshape([1] * x.rank + [-1]))
    steps = layers.cast(net, layers.binary(net, "greater", size, limits), "int32")
    count = layers.reduce(net, "sum", steps, [x.rank], keep_dims=False)
    half = layers.scalar_like(net, len(table.codes) // 2, count)
    place = layers.select(net, _is_negative(net, x), layers.binary(net, "sum", count, half), count)
    codes = net.emit("gather", [net.constant(table.codes), place], mode="default", axis=0)
    nan = layers.scalar_like(net, table.nan, codes)
    return layers.select(net, layers.unary(net, "isnan", x), nan, codes)


def _is_negative(net: Network, x: Value) -> Value:
    """Whether the sign is set, that of a zero too."""
    zero = layers.scalar_like(net, 0.0, x)
    below = layers.binary(net, "less", x, zero)
    zero_below = layers.binary(net, "less", layers.unary(net, "recip", x), zero)
    return layers.binary(net, "or", below, zero_below)
