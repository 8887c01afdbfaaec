"""Exact sums of products of 8-bit integers, whose zero points become corrections of the sums of the integers alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mlirt.dialects.symbolic import Dim
from mlirt.frontend.importing import layers
from mlirt.frontend.importing.network import Network, Value
from mlirt.frontend.importing.products import product as matrix_product
from mlirt.frontend.onnx.node import Node
from mlirt.frontend.onnx.ops_convolution import convolve
from mlirt.frontend.onnx.quantized import without_offset

# Sums of this many products of 8-bit numbers are exact in float32.
_EXACT_TERMS = (1 << 24) // (255 * 255)


def integer_product(net: Network, node: Node, a: Value, b: Value, a_zero: Value | None, b_zero: Value | None) -> Value:
    """(a - a_zero)(b - b_zero) as int32, wrapped around; zero points are single, or one per row of a, column of b."""
    rows, columns = (1, *a.dims) if a.rank == 1 else a.dims, (*b.dims, 1) if b.rank == 1 else b.dims
    left, right = layers.reshape(net, a, rows), layers.reshape(net, b, columns)
    total = _product_of_matrices(net, node, left, right, _laid(net, a_zero, [-1, 1]), _laid(net, b_zero, [-1]))
    lone = [axis for axis, value in ((total.rank - 2, a), (total.rank - 1, b)) if value.rank == 1]
    return layers.squeeze(net, total, lone)


def _laid(net: Network, zero: Value | None, shape: list[Dim]) -> Value | None:
    """A list of zero points in the given shape, -1 being its length; single ones without dimensions."""
    if zero is None or (zero.array is not None and not zero.array.any()):
        return None
    if all(dim == 1 for dim in zero.dims):
        return layers.reshape(net, zero, [])
    return zero if zero.rank != 1 else layers.reshape(net, zero, [zero.dims[0] if dim == -1 else dim for dim in shape])


def _product_of_matrices(
    net: Network, node: Node, a: Value, b: Value, a_zero: Value | None, b_zero: Value | None
) -> Value:
    if b.array is None and _is_exact(a.dims[-1]):  # matrices of the run have fast kernels in float32 alone
        factors = without_offset(net, a, a_zero), without_offset(net, b, b_zero)
        return layers.cast(net, matrix_product(net, node, *factors), "int32")
    b, b_zero = signed(net, b, b_zero)
    total = matrix_product(net, node, a, b)
    if a_zero is not None:
        weights = layers.cast(net, b, "int32")
        weights = weights if b_zero is None else layers.binary(net, "sub", weights, b_zero)
        sums = layers.reduce(net, "sum", weights, [b.rank - 2])
        total = layers.binary(net, "sub", total, layers.binary(net, "prod", layers.cast(net, a_zero, "int32"), sums))
    if b_zero is not None:
        sums = layers.reduce(net, "sum", layers.cast(net, a, "int32"), [a.rank - 1])
        total = layers.binary(net, "sub", total, layers.binary(net, "prod", sums, b_zero))
    return total


def _is_exact(terms: Dim) -> bool:
    """Whether float32 holds every sum of so many int8 products."""
    return isinstance(terms, int) and terms <= _EXACT_TERMS


def signed(net: Network, b: Value, zero: Value | None) -> tuple[Value, Value | None]:
    """The bytes as int8, and the rest of their zero point as int32: none where bytes can be stored without it."""
    if b.array is not None and (zero is None or zero.array is not None):
        centred = b.array.astype(np.int64) - (0 if zero is None or zero.array is None else zero.array.astype(np.int64))
        if centred.min(initial=0) >= -128 and centred.max(initial=0) <= 127:
            return net.constant(centred.astype(np.int8), b.hint), None
    offset = None if zero is None else layers.cast(net, zero, "int32")
    if b.element_name == "int8":
        return b, offset
    wide = layers.cast(net, b, "int32")
    half = layers.scalar_like(net, 128, wide)
    shifted = layers.cast(net, layers.binary(net, "sub", wide, half), "int8")
    if offset is None:
        return shifted, layers.scalar_like(net, -128, wide, rank=0)
    return shifted, layers.binary(net, "sub", offset, layers.scalar_like(net, 128, wide, rank=0))


def integer_convolution(
    net: Network,
    node: Node,
    x: Value,
    kernel: Value,
    x_zero: Value | None,
    kernel_zero: Value | None,
    bias: Value | None,
) -> Value:
    """The convolution of x - x_zero with kernel - kernel_zero plus an int32 bias, as int32.

    `kernel_zero` is single or one per kernel. Cells of padding hold x_zero.
    """
    x_zero, zero = _laid(net, x_zero, []), _laid(net, kernel_zero, [-1, *[1] * (kernel.rank - 1)])
    weights, rest = signed(net, kernel, zero)
    groups, kernels = node.integer("group", 1), kernel.dims[0]
    known = 0 if x_zero is None else None if x_zero.array is None else int(x_zero.array)
    if rest is not None and groups not in (1, kernels):
        return _wide_convolution(net, node, x, kernel, x_zero, zero, bias)
    padding = known if known is not None or x_zero is None else x_zero
    if known:
        bias = _joined(net, _offset(net, weights, rest, net.constant(np.array(known, np.int32))), bias)
    total = convolve(net, node, x, weights, bias, padding or 0)
    if rest is not None:
        # Each kernel also takes its zero point from every cell of the window, whose sum all kernels of a group share.
        ones = net.constant(np.ones([groups, *(int(str(dim)) for dim in kernel.dims[1:])], np.int8), "ones")
        window = convolve(net, node, x, ones, None, padding or 0)
        spread = layers.reshape(net, rest, rest.dims[:1] + rest.dims[2:]) if rest.rank else rest
        total = layers.binary(net, "sub", total, layers.binary(net, "prod", window, spread))
    if known is not None or x_zero is None:
        return total
    offset = _offset(net, weights, rest, layers.cast(net, x_zero, "int32"))
    return layers.binary(net, "sum", total, layers.reshape(net, offset, [*offset.dims, *[1] * (total.rank - 2)]))


def _offset(net: Network, weights: Value, rest: Value | None, zero: Value) -> Value:
    """What a zero point of the input subtracts from the sums of each kernel, whose weights are `weights` - `rest`."""
    wide = layers.cast(net, weights, "int32")
    wide = wide if rest is None else layers.binary(net, "sub", wide, rest)
    sums = layers.reduce(net, "sum", wide, list(range(1, weights.rank)), False)
    return layers.unary(net, "neg", layers.binary(net, "prod", sums, zero))


def _joined(net: Network, offset: Value, bias: Value | None) -> Value:
    return offset if bias is None else layers.binary(net, "sum", offset, bias)


def _wide_convolution(
    net: Network, node: Node, x: Value, kernel: Value, x_zero: Value | None, zero: Value | None, bias: Value | None
) -> Value:
    """As `integer_convolution`, in int32: fast algorithms round sums of float32 numbers, also where these are whole."""
    image, weights = (
        layers.cast(net, without_offset(net, value, offset), "int32") for value, offset in ((x, x_zero), (kernel, zero))
    )
    total = convolve(net, node, image, weights, None)
    if bias is None:
        return total
    return layers.binary(net, "sum", total, layers.reshape(net, bias, [bias.dims[0], *[1] * (total.rank - 2)]))


def per_result(net: Network, node: Node, k: int, shape: Sequence[Dim]) -> Value:
    """Input `k`: a list of one number per channel along the -1 of `shape`, or one number without dimensions."""
    value = node.input(k)
    if all(dim == 1 for dim in value.dims):
        return layers.reshape(net, value, [])
    return (
        value if value.rank != 1 else layers.reshape(net, value, [value.dims[0] if dim == -1 else dim for dim in shape])
    )
