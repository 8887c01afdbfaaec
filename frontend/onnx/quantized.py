"""Scales and zero points: quantise and dequantise with one for all, one per slice of an axis, or one per block."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from mlirt.dialects.quantization_scales import wrong_scale
from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_types import element_type, is_float, tensor
from mlirt.frontend.importing import layers
from mlirt.frontend.importing.narrow_type import NarrowType
from mlirt.frontend.importing.network import Network, Value
from mlirt.frontend.onnx.narrow_values import as_narrow, clipped, narrowed, widened
from mlirt.frontend.onnx.node import Node
from mlirt.frontend.onnx.packed_matrices import FLOAT4, dequantized_blocks


def quantized(net: Network, node: Node, x: Value, scale: Value, zero: Value | None, axis: int, element: str) -> Value:
    """saturate(round(x / scale) + zero)."""
    x = layers.in_float(net, x)
    if scale.rank > 1 and not _is_single(scale):
        return _by_blocks(net, node, x, scale, zero, axis, element)
    if scale.element != x.element and not is_float(scale.element):
        raise node.invalid(f"expected a floating-point scale, but it is {scale.element_name}")
    _check_positive(node, scale, zeros_too=False)
    scale, zero, along = _fitted(net, node, x, scale, zero, axis)
    return net.emit_as(tensor(element_type(element), x.dims), "quantize", [x, scale, zero], axis=along)


def dequantized(net: Network, node: Node, x: Value, scale: Value, zero: Value | None, axis: int = 1) -> Value:
    """(x - zero) * scale in the scale's type."""
    if scale.rank > 1 and not _is_single(scale):
        by_blocks = dequantized_blocks(net, node, x, scale, zero, node.from_front(axis, x.rank))
        if by_blocks is not None:
            return by_blocks
        factor, offset = (None if v is None else _repeated(net, node, x, v, axis) for v in (scale, zero))
        assert factor is not None
        wide = layers.cast(net, x, scale.element)
        shifted = wide if offset is None else layers.binary(net, "sub", wide, layers.cast(net, offset, scale.element))
        return layers.binary(net, "prod", shifted, factor)
    _check_positive(node, scale, zeros_too=True)
    scale, zero, along = _fitted(net, node, x, scale, zero, axis)
    return net.emit("dequantize", [x, scale, zero], axis=along)


def _check_positive(node: Node, scale: Value, *, zeros_too: bool) -> None:
    """Refuse a constant scale with which integers stand for nothing; 0 does for weights that are all 0 (10.5)."""
    numbers = scale.array
    if numbers is None or numbers.dtype.kind != "f":
        return
    wrong = wrong_scale(numbers, zeros_too=zeros_too)
    if wrong is not None:
        raise node.invalid(f"expected scales greater than 0, but {scale.hint or 'its scale'} holds {wrong}")


def _is_single(value: Value) -> bool:
    return all(dim == 1 for dim in value.dims)


def _fitted(
    net: Network, node: Node, x: Value, scale: Value, zero: Value | None, axis: int
) -> tuple[Value, Value | None, int | None]:
    """Scale and zero point both 0-D, or both 1-D with the axis that they lie along."""
    if _is_single(scale):
        scale = layers.reshape(net, scale, [])
    if zero is not None and zero.dims != scale.dims:
        zero = layers.reshape(net, zero, []) if _is_single(zero) else zero
        zero = layers.expand(net, layers.with_rank(net, zero, scale.rank), scale.dims)
    return scale, zero, node.from_front(axis, x.rank) if scale.rank else None


def _repeated(net: Network, node: Node, x: Value, coefficient: Value, axis: int) -> Value:
    """One coefficient per block of `block_size` along an axis, repeated to the dimensions of `x`."""
    axis, block = node.from_front(axis, x.rank), node.integer("block_size", 0)
    if block < 1 or coefficient.rank != x.rank:
        raise node.invalid(
            f"expected a scale of rank 0 or 1, or one of rank {x.rank} with block_size, got rank {coefficient.rank}"
        )
    spread = layers.unsqueeze(net, coefficient, [axis + 1])
    dims: list[Dim] = list(spread.dims)
    dims[axis + 1] = block
    joined = layers.expand(net, spread, dims)
    whole: list[Dim] = list(coefficient.dims)
    whole[axis] = coefficient.dims[axis] * block
    return layers.slice_of(net, layers.reshape(net, joined, whole), [0] * x.rank, x.dims)


def _by_blocks(net: Network, node: Node, x: Value, scale: Value, zero: Value | None, axis: int, element: str) -> Value:
    limits = np.iinfo(element)
    factor = layers.cast(net, _repeated(net, node, x, scale, axis), x.element)
    rounded = layers.unary(net, "round", layers.binary(net, "div", x, factor))
    if zero is not None:
        rounded = layers.binary(net, "sum", rounded, layers.cast(net, _repeated(net, node, x, zero, axis), x.element))
    return layers.cast(net, layers.activation(net, "clip", rounded, float(limits.min), float(limits.max)), element)


def quantized_narrowly(net: Network, node: Node, kind: NarrowType) -> Value:
    """x / scale (+ zero) as integers of less than 8 bits, or rounded to a float of at most 8 bits."""
    x, zero, axis = layers.in_float(net, node.input(0)), node.optional(2), node.integer("axis", 1)
    if kind.is_kept and _is_plain(node.input(1)) and node.integer("saturate", 1):
        # ONNX leaves the zero point of 8-bit floats out.
        return as_narrow(quantized(net, node, x, node.input(1), None, axis, kind.storage), kind)
    ratio = layers.binary(net, "div", x, layers.cast(net, _spread(net, node, x, node.input(1), axis), x.element))
    if zero is not None and kind.bits == 4 and not kind.is_integer:
        # The sum with zero makes a positive zero of a negative one; for 8-bit floats ONNX leaves it out.
        ratio = layers.binary(net, "sum", ratio, _spread(net, node, x, _wide(net, zero, x), axis))
    if not kind.is_integer:
        return narrowed(net, ratio, kind, bool(node.integer("saturate", 1)))
    whole = layers.unary(net, "round", ratio)
    if zero is not None:
        whole = layers.binary(net, "sum", whole, _spread(net, node, x, _wide(net, zero, x), axis))
    return clipped(net, whole, kind)


def dequantized_floats(net: Network, node: Node) -> Value:
    """(x - zero) * scale for floats of at most 8 bits."""
    scale, zero, axis = node.input(1), node.optional(2), node.integer("axis", 1)
    x = node.input(0)
    if x.narrow is not None and x.narrow.is_kept and _is_plain(scale) and (zero is None or _is_known_zero(zero)):
        return dequantized(net, node, replace(x, narrow=None), scale, None, axis)
    by_blocks = None
    if x.narrow is not None and x.narrow.name == FLOAT4 and scale.rank > 1 and not _is_single(scale):
        by_blocks = dequantized_blocks(net, node, x, scale, zero, node.from_front(axis, x.rank))
    if by_blocks is not None:
        return by_blocks
    x = widened(net, node.input(0), scale.element)
    if zero is not None:
        x = layers.binary(net, "sub", x, _spread(net, node, x, _wide(net, zero, x), axis))
    return layers.binary(net, "prod", x, _spread(net, node, x, scale, axis))


def _is_plain(scale: Value) -> bool:
    """Whether there is one scale for all, or one for each slice of an axis."""
    return scale.rank <= 1 or _is_single(scale)


def _is_known_zero(value: Value) -> bool:
    return value.array is not None and not value.array.astype(np.float32).any()


def _wide(net: Network, value: Value, like: Value) -> Value:
    return layers.cast(net, value, like.element) if value.narrow is None else widened(net, value, like.element)


def _spread(net: Network, node: Node, x: Value, coefficient: Value, axis: int) -> Value:
    """A coefficient of all, of each slice of an axis, or of each block, so that it broadcasts to `x`."""
    if _is_single(coefficient):
        return layers.reshape(net, coefficient, [1] * x.rank)
    if coefficient.rank > 1:
        return _repeated(net, node, x, coefficient, axis)
    along = node.from_front(axis, x.rank)
    return layers.reshape(net, coefficient, [coefficient.dims[0] if k == along else 1 for k in range(x.rank)])


def is_zero(value: Value) -> bool:
    """Whether all elements are known to be 0."""
    return value.array is not None and not value.array.any()


def without_offset(net: Network, x: Value, zero: Value | None, shape: Sequence[Dim] | None = None) -> Value:
    """x - zero as float32: integers of 8 bits and their differences are exact in it."""
    wide = layers.cast(net, x, "float32")
    if zero is None or is_zero(zero):
        return wide
    offset = layers.cast(net, zero, "float32")
    return layers.binary(net, "sub", wide, offset if shape is None else layers.reshape(net, offset, shape))
