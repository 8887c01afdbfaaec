"""Layers that importers share, with what models leave implicit put in: ranks, element types, shapes of constants."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.ir import Attribute

from mlirt.dialects.broadcasting import is_repeated
from mlirt.dialects.symbolic import Dim, ceil_div, maximum
from mlirt.dialects.tensor_types import element_type, is_float, numpy_dtype, tensor
from mlirt.errors import UnsupportedError
from mlirt.frontend.importing.dim_numbers import not_negative
from mlirt.frontend.importing.network import Network, Value

# Longer sequences are left to the engine, which makes them as it runs.
MAX_COUNT = 1 << 20
MAX_RANK = 64


def activation(net: Network, kind: str, x: Value, alpha: float = 0.0, beta: float = 0.0) -> Value:
    return net.emit("activation", [x], kind=kind, alpha=alpha, beta=beta)


def unary(net: Network, kind: str, x: Value) -> Value:
    return net.emit("unary", [x], kind=kind)


def binary(net: Network, kind: str, a: Value, b: Value) -> Value:
    """An elementwise op with NumPy's broadcast: the shorter shape is filled up with leading ones."""
    left, right = aligned(net, [a, b])
    return net.emit("elementwise", [left, right], kind=kind)


def select(net: Network, condition: Value, a: Value, b: Value) -> Value:
    return net.emit("select", aligned(net, [condition, a, b]))


def aligned(net: Network, values: Sequence[Value]) -> list[Value]:
    """The values with leading dimensions of length 1, so that all have one rank."""
    rank = max(value.rank for value in values)
    return [with_rank(net, value, rank) for value in values]


def with_rank(net: Network, x: Value, rank: int) -> Value:
    """The value with leading dimensions of length 1."""
    return x if x.rank >= rank else reshape(net, x, [1] * (rank - x.rank) + list(x.dims))


def reshape(net: Network, x: Value, dims: Sequence[Dim]) -> Value:
    """The same elements with other dimensions."""
    if tuple(dims) == x.dims:
        return x
    return net.emit("shuffle", [x, None], reshape_dims=list(dims), zero_is_placeholder=False)


def transpose(net: Network, x: Value, permutation: Sequence[int]) -> Value:
    """The dimensions in another order: dimension `k` of the result is `permutation[k]` of the input."""
    if list(permutation) == list(range(x.rank)):
        return x
    return net.emit("shuffle", [x, None], first_transpose=list(permutation))


def unsqueeze(net: Network, x: Value, axes: Sequence[int]) -> Value:
    """Dimensions of length 1 put in, so that they stand at `axes` of the result."""
    dims = list(x.dims)
    for axis in sorted(axes):
        dims.insert(axis, 1)
    return reshape(net, x, dims)


def squeeze(net: Network, x: Value, axes: Sequence[int]) -> Value:
    """Dimensions taken out, which have length 1."""
    return reshape(net, x, [dim for k, dim in enumerate(x.dims) if k not in axes])


def cast(net: Network, x: Value, element: Attribute | str) -> Value:
    """The elements converted to another type."""
    target = element_type(element) if isinstance(element, str) else element
    return x if x.element == target else net.emit_as(tensor(target, x.dims), "identity", [x])


def scalar_like(net: Network, value: float, like: Value, rank: int | None = None) -> Value:
    """A constant of `like`'s element type and rank, with one element."""
    shape = (1,) * (like.rank if rank is None else rank)
    return net.constant(np.full(shape, value, numpy_dtype(like.element)))


def integers(net: Network, values: Sequence[int]) -> Value:
    """A constant list of int64."""
    return net.constant(np.array(values, np.int64))


def filled(net: Network, dims: Sequence[int], value: np.ndarray[tuple[int, ...], np.dtype[np.generic]]) -> Value:
    """A constant in which every element is the one element of `value`; it takes no memory."""
    return net.constant(np.broadcast_to(value.reshape((1,) * len(dims)), tuple(dims)))


def reduce(net: Network, kind: str, x: Value, axes: Sequence[int], keep_dims: bool = True) -> Value:
    return x if not axes else net.emit("reduce", [x], kind=kind, axes=list(axes), keep_dims=keep_dims)


def log_sum_exp(net: Network, given: Value, axes: Sequence[int], keep_dims: bool = True) -> Value:
    """log(sum(exp(x))), with the largest element taken out first so that nothing overflows."""
    x = in_float(net, given)
    if any(x.dims[axis] == 0 for axis in axes):
        total = reduce(net, "sum", unary(net, "exp", x), axes, keep_dims)
        return cast(net, unary(net, "log", total), given.element)
    largest = reduce(net, "max", x, axes)
    infinite = unary(net, "isinf", largest)
    peak = select(net, infinite, scalar_like(net, 0.0, largest), largest)
    total = reduce(net, "sum", unary(net, "exp", binary(net, "sub", x, peak)), axes)
    result = binary(net, "sum", unary(net, "log", total), peak)
    result = result if keep_dims else squeeze(net, result, axes)
    return cast(net, result, given.element)


def slice_of(
    net: Network, x: Value, start: Sequence[Dim], size: Sequence[Dim], stride: Sequence[int] | None = None
) -> Value:
    """The part of `x` that starts at `start` and has `size` elements along each dimension, `stride` apart."""
    steps = [1] * x.rank if stride is None else list(stride)
    if tuple(size) == x.dims and all(first == 0 for first in start) and all(step == 1 for step in steps):
        return x
    return net.emit("slice", [x, None, None, None, None], start=list(start), size=list(size), stride=steps)


def along(net: Network, x: Value, axis: int, start: Dim, size: Dim, stride: int = 1) -> Value:
    """Part of `x` along one dimension."""
    starts, sizes, steps = [0] * x.rank, list(x.dims), [1] * x.rank
    starts_: list[Dim] = list(starts)
    starts_[axis], sizes[axis], steps[axis] = start, size, stride
    return slice_of(net, x, starts_, sizes, steps)


def concatenate(net: Network, values: Sequence[Value], axis: int) -> Value:
    return values[0] if len(values) == 1 else net.emit("concatenation", [list(values)], axis=axis)


def matrix_multiply(net: Network, a: Value, b: Value, lhs_op: str = "none", rhs_op: str = "none") -> Value:
    return net.emit("matrix_multiply", [a, b], lhs_op=lhs_op, rhs_op=rhs_op)


def in_float(net: Network, x: Value) -> Value:
    """Integers as float32; floats as they are."""
    return x if is_float(x.element) else cast(net, x, "float32")


def widened(net: Network, x: Value) -> Value:
    """Half precision as float32: its squares, and reciprocals of small numbers, are beyond the range of float16."""
    return cast(net, x, "float32") if x.element_name in ("float16", "bfloat16") else x


def expand(net: Network, x: Value, dims: Sequence[Dim]) -> Value:
    """Dimensions of length 1 repeated to `dims`; the rank stays."""
    if tuple(dims) == x.dims:
        return x
    x = broadcast_to(net, x, dims)
    repeated = [have != want for have, want in zip(x.dims, dims, strict=True)]
    array = x.array
    if array is not None and array.size == 1 and all(isinstance(dim, int) for dim in dims):
        return filled(net, [dim for dim in dims if isinstance(dim, int)], array)
    return slice_of(net, x, [0] * x.rank, dims, [0 if again else 1 for again in repeated])


def broadcast_to(net: Network, x: Value, dims: Sequence[Dim]) -> Value:
    """The rank of `dims`, and its lengths where only a run can tell whether they are those of `x` or repeat a 1."""
    x = with_rank(net, x, len(dims))
    size = [have if is_repeated(have) else want for have, want in zip(x.dims, dims, strict=True)]
    return x if tuple(size) == x.dims else net.emit("broadcast", [x], size=size)


def tile(net: Network, x: Value, counts: Sequence[Dim]) -> Value:
    """The whole tensor repeated along each dimension."""
    sizes = [dim * count for dim, count in zip(x.dims, counts, strict=True)]
    if tuple(sizes) == x.dims:
        return x
    return net.emit(
        "slice", [x, None, None, None, None], start=[0] * x.rank, size=sizes, stride=[1] * x.rank, mode="wrap"
    )


def reversed_along(net: Network, x: Value, axis: int) -> Value:
    """The elements along one dimension in the opposite order."""
    return along(net, x, axis, x.dims[axis] - 1, x.dims[axis], -1)


def range_length(start: Dim, limit: Dim, step: int) -> Dim:
    """How many steps lead from `start` to before `limit`."""
    span = limit - start if step > 0 else start - limit
    count = ceil_div(span, abs(step))
    return count if not_negative(count) else maximum(count, 0)


def counting(net: Network, element: str, count: Dim, start: Dim = 0, step: int = 1) -> Value:
    """start, start + step, ..: `count` elements."""
    if isinstance(count, int) and isinstance(start, int) and count <= MAX_COUNT:
        return net.constant((start + step * np.arange(count)).astype(numpy_dtype(element_type(element))))
    if not isinstance(start, int):
        raise UnsupportedError(f"a range that starts at {start} is not supported yet; expected a number")
    kind = numpy_dtype(element_type(element))
    first, beta = net.constant(np.array(start, kind)), net.constant(np.array(step, kind))
    return net.emit("fill", [None, first, beta], kind="linspace", output_dims=[count])


def length_of(net: Network, value: Value, axis: int) -> Value:
    """The length of an axis as a 0-D int64 value."""
    length = value.dims[axis]
    if isinstance(length, int):
        return net.constant(np.array(length, np.int64))
    shape = net.emit("shape", [value])
    made = reshape(net, along(net, shape, 0, axis, 1), [])
    numbers = np.empty((), object)
    numbers[()] = length
    made.numbers = numbers
    return made


def pad(net: Network, x: Value, pre: Sequence[Dim], post: Sequence[Dim], mode: str, value: Value | None) -> Value:
    """Cells before and after each dimension; negative numbers crop. A dynamic pad is a slice that starts outside."""
    if all(dim == 0 for dim in (*pre, *post)):
        return x
    fill = None if value is None or mode != "constant" else reshape(net, cast(net, value, x.element), [])
    if all(isinstance(dim, int) for dim in (*pre, *post)):
        return net.emit("padding", [x, fill], pre=list(pre), post=list(post), mode=mode)
    size = [dim + before + after for dim, before, after in zip(x.dims, pre, post, strict=True)]
    modes = {"constant": "fill", "reflect": "reflect", "edge": "clamp", "wrap": "wrap"}
    start = [before * -1 for before in pre]
    return net.emit("slice", [x, None, None, None, fill], start=start, size=size, stride=[1] * x.rank, mode=modes[mode])


def triangle(net: Network, x: Value, diagonal: Value, *, upper: bool) -> Value:
    """The upper or lower triangle from a diagonal on; zeros elsewhere."""
    rows = counting(net, "int64", x.dims[-2])
    columns = reshape(net, counting(net, "int64", x.dims[-1]), [1, x.dims[-1]])
    edge = reshape(net, binary(net, "sum", rows, diagonal), [x.dims[-2], 1])
    kept = binary(net, "greater_equal" if upper else "less_equal", columns, edge)
    return select(net, kept, x, scalar_like(net, 0, x))


def first_largest(net: Network, x: Value, axis: int) -> Value:
    """1 at the first of the largest elements along an axis, else 0."""
    found = cast(net, net.emit_many("topk", [x], 2, kind="max", k=1, axis=axis)[1], "int64")
    shape = [x.dims[axis] if k == axis else 1 for k in range(x.rank)]
    positions = reshape(net, counting(net, "int64", x.dims[axis]), shape)
    return cast(net, binary(net, "equal", positions, found), x.element)
