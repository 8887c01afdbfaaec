"""Quantised programs: those of torch.export's quantisation (`quantized_decomposed`), and torchao's.

Scales and zero points are numbers of the program, or tensors: weights, or what a run finds for its own inputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np

from mlirt.dialects.symbolic import Dim, product
from mlirt.dialects.tensor_types import element_type, numpy_dtype, tensor
from mlirt.frontend.importing import layers
from mlirt.frontend.importing.network import Network, Value
from mlirt.frontend.torch.call import Call
from mlirt.frontend.torch.handlers import aten_op, torch_op

_SPACE = "quantized_decomposed"


@torch_op(f"{_SPACE}.quantize_per_tensor.default", f"{_SPACE}.quantize_per_tensor.tensor")
def quantize_per_tensor(net: Network, call: Call) -> Value:
    x, scale, zero = call.value("input"), call.operand("scale", "float32"), call.operand("zero_point", call.element)
    return _quantized(net, call, x, layers.reshape(net, scale, []), layers.reshape(net, zero, []), None)


@torch_op(f"{_SPACE}.dequantize_per_tensor.default", f"{_SPACE}.dequantize_per_tensor.tensor")
def dequantize_per_tensor(net: Network, call: Call) -> Value:
    x = call.value("input")
    scale, zero = call.operand("scale", call.element), call.operand("zero_point", x.element_name)
    return _dequantized(net, x, layers.reshape(net, scale, []), layers.reshape(net, zero, []), None)


@torch_op(f"{_SPACE}.quantize_per_channel.default")
def quantize_per_channel(net: Network, call: Call) -> Value:
    x = call.value("input")
    scale, zero = call.operand("scales", "float32"), call.operand("zero_points", call.element)
    return _quantized(net, call, x, scale, zero, call.axis("axis", x.rank))


@torch_op(f"{_SPACE}.dequantize_per_channel.default")
def dequantize_per_channel(net: Network, call: Call) -> Value:
    x = call.value("input")
    zero = call.operand("zero_points", x.element_name) if call.given("zero_points") else None
    return _dequantized(net, x, call.operand("scales", call.element), zero, call.axis("axis", x.rank))


@torch_op(f"{_SPACE}.choose_qparams.tensor")
def choose_scale_and_zero(net: Network, call: Call) -> Sequence[Value]:
    """The scale and the zero point with which the least and the largest element (and 0) are integers of the range."""
    x, (least, most) = layers.in_float(net, call.value("input")), _range_of(call)
    low, high = _extremes(net, x)
    scale = layers.binary(net, "div", layers.binary(net, "sub", high, low), layers.scalar_like(net, most - least, low))
    scale = layers.binary(net, "max", scale, layers.scalar_like(net, call.real("eps"), scale))
    steps = layers.unary(net, "round", layers.binary(net, "div", low, scale))
    zero = layers.binary(net, "sub", layers.scalar_like(net, least, steps), steps)
    zero = layers.activation(net, "clip", zero, float(least), float(most))
    return _as_declared(net, call, [scale, zero])


@torch_op(f"{_SPACE}.choose_qparams_symmetric.tensor")
def choose_symmetric_scale(net: Network, call: Call) -> Sequence[Value]:
    """The scale with which the element furthest from 0 is the largest integer of the range; the zero point is 0."""
    x, (least, most) = layers.in_float(net, call.value("input")), _range_of(call)
    low, high = _extremes(net, x)
    furthest = layers.binary(net, "max", layers.unary(net, "neg", low), high)
    scale = layers.binary(net, "div", furthest, layers.scalar_like(net, (most - least) / 2, furthest))
    scale = layers.binary(net, "max", scale, layers.scalar_like(net, call.real("eps"), scale))
    zero = 0 if numpy_dtype(element_type(call.arguments["dtype"])).kind == "i" else 128
    return _as_declared(net, call, [scale, layers.scalar_like(net, zero, scale)])


@torch_op("torchao.quantize_affine.default")
def quantize_affine(net: Network, call: Call) -> Value:
    """torchao's: each block of `block_size` has a scale of its own."""
    x, scale, zero, axis = _of_blocks(net, call, "float32", call.element)
    found = _quantized(net, call, x, scale, zero, axis)
    return layers.reshape(net, found, call.result_dims)


@torch_op("torchao.dequantize_affine.default")
def dequantize_affine(net: Network, call: Call) -> Value:
    """Back from `quantize_affine`."""
    x, scale, zero, axis = _of_blocks(net, call, call.element, call.value("input").element_name)
    return layers.reshape(net, _dequantized(net, x, scale, zero, axis), call.result_dims)


@aten_op("_int_mm.default")
def product_of_int8(net: Network, call: Call) -> Value:
    """int8 times int8 as exact int32 sums."""
    return layers.matrix_multiply(net, call.value("self"), call.value("mat2"))


def _quantized(net: Network, call: Call, x: Value, scale: Value, zero: Value | None, axis: int | None) -> Value:
    """saturate(round(x / scale) + zero); a range that is narrower than the element type's cuts the result."""
    least, most = _range_of(call)
    found = net.emit_as(
        tensor(element_type(call.element), x.dims),
        "quantize",
        [layers.in_float(net, x), layers.cast(net, scale, "float32"), _needed(zero)],
        axis=axis,
    )
    limits = np.iinfo(call.element)
    if least > limits.min:
        found = layers.binary(net, "max", found, layers.scalar_like(net, least, found))
    if most < limits.max:
        found = layers.binary(net, "min", found, layers.scalar_like(net, most, found))
    return found


def _dequantized(net: Network, x: Value, scale: Value, zero: Value | None, axis: int | None) -> Value:
    return net.emit("dequantize", [x, scale, _needed(zero)], axis=axis)


def _needed(zero: Value | None) -> Value | None:
    """A zero point, unless it is known to be 0."""
    numbers = None if zero is None else zero.array
    return None if numbers is not None and not numbers.any() else zero


def _range_of(call: Call) -> tuple[int, int]:
    """The least and the largest integer; those of the element type where the call leaves them open."""
    name = call.arguments["dtype"] if "dtype" in call.arguments else call.element
    element = np.dtype(numpy_dtype(element_type(name)))
    if element.kind not in "iu":
        raise call.unsupported(f"its integers are {name}, expected an integer type")
    limits = np.iinfo(element)
    least = call.integer("quant_min") if call.given("quant_min") else int(limits.min)
    most = call.integer("quant_max") if call.given("quant_max") else int(limits.max)
    return max(least, int(limits.min)), min(most, int(limits.max))


def _extremes(net: Network, x: Value) -> list[Value]:
    """The least and the largest of a tensor's elements and 0, 0-D."""
    x = layers.widened(net, x)
    nothing, axes = layers.scalar_like(net, 0.0, x, rank=0), list(range(x.rank))
    return [
        layers.binary(net, kind, layers.reduce(net, kind, x, axes, keep_dims=False), nothing) for kind in ("min", "max")
    ]


def _as_declared(net: Network, call: Call, values: Sequence[Value]) -> list[Value]:
    """Each in the element type and the shape that PyTorch says."""
    return [
        layers.reshape(net, layers.cast(net, value, wanted.element), wanted.dims)
        for value, wanted in zip(values, call.results, strict=True)
    ]


def _of_blocks(
    net: Network, call: Call, scale_element: str, zero_element: str
) -> tuple[Value, Value, Value | None, int | None]:
    """The input with the blocks along its axis 0 (or whole), a scale and a zero point for each, and that axis.

    An axis that has a scale for each element, all others none, stays where it is, as layers of int8 are found by it.
    """
    x, sizes = call.value("input"), cast("list[Dim]", call.arguments["block_size"])
    sizes = [dim if size == -1 else size for size, dim in zip(sizes, x.dims, strict=True)]
    scale, zero = layers.cast(net, call.value("scale"), scale_element), call.optional("zero_point")
    zero = None if zero is None or 0 in zero.dims else layers.cast(net, zero, zero_element)
    split = [axis for axis, (size, dim) in enumerate(zip(sizes, x.dims, strict=True)) if size != dim]
    if not split:
        return x, layers.reshape(net, scale, []), _reshaped(net, zero, []), None
    if len(split) == 1 and sizes[split[0]] == 1:
        count = x.dims[split[0]]
        return x, layers.reshape(net, scale, [count]), _reshaped(net, zero, [count]), split[0]
    x, count = _flattened(net, call, x, sizes)
    return x, layers.reshape(net, scale, [count]), _reshaped(net, zero, [count]), 0


def _reshaped(net: Network, zero: Value | None, dims: Sequence[Dim]) -> Value | None:
    return None if zero is None else layers.reshape(net, zero, dims)


def _flattened(net: Network, call: Call, x: Value, sizes: Sequence[Dim]) -> tuple[Value, Dim]:
    """[blocks, elements of a block] and how many blocks, where these follow each other in memory."""
    if any(size != 1 for size in sizes[:-1]) or not isinstance(sizes[-1], int):
        raise call.unsupported(f"its blocks are {list(sizes)}, expected blocks along the last axis")
    last = x.dims[-1]
    if not isinstance(last, int):
        raise call.unsupported("the axis of its blocks must be known when the engine is built")
    count = product(x.dims[:-1]) * (last // sizes[-1])
    return layers.reshape(net, x, [count, sizes[-1]]), count
