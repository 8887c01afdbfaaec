"""Poolings: windows that slide, and windows that share an axis among a given number of results."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from mlirt.dialects.symbolic import Dim, ceil_div, floor_div, product
from mlirt.dialects.tensor_types import is_float
from mlirt.frontend.importing import layers, pooling
from mlirt.frontend.importing.network import Network, Value
from mlirt.frontend.importing.places_of_maxima import places_of_maxima
from mlirt.frontend.importing.windows import Geometry
from mlirt.frontend.torch.call import Call
from mlirt.frontend.torch.handlers import aten_op


def _axes(call: Call) -> int:
    """1 of max_pool1d, 2 of max_pool2d, .."""
    return next(int(letter) for letter in call.operator if letter.isdigit())


def _per_axis(call: Call, name: str, axes: int, default: list[int] | None = None) -> list[int]:
    given = call.integers(name) or default or []
    return given * axes if len(given) == 1 else given


def _geometry(call: Call, axes: int) -> tuple[list[int], Geometry]:
    sizes = _per_axis(call, "kernel_size", axes)
    strides = _per_axis(call, "stride", axes, sizes)
    pads = _per_axis(call, "padding", axes)
    dilations = _per_axis(call, "dilation", axes) if "dilation" in call.arguments else [1] * axes
    return sizes, Geometry(strides, dilations, pads, list(pads))


def _batched(net: Network, x: Value, axes: int) -> Value:
    return x if x.rank == axes + 2 else layers.unsqueeze(net, x, [0])


@aten_op("max_pool1d.default", "max_pool2d.default", "max_pool3d.default")
def max_pool(net: Network, call: Call) -> Value:
    axes = _axes(call)
    sizes, geometry = _geometry(call, axes)
    x = _batched(net, call.value("self"), axes)
    result = pooling.pool(net, x, "max", sizes, geometry, ceil_mode=call.flag("ceil_mode"))
    return layers.reshape(net, result, call.result_dims)


@aten_op("max_pool2d_with_indices.default", "max_pool3d_with_indices.default")
def max_pool_and_places(net: Network, call: Call) -> Sequence[Value]:
    """The places are counted in each image alone."""
    axes = _axes(call)
    sizes, geometry = _geometry(call, axes)
    x = _batched(net, call.value("self"), axes)
    given = Geometry(geometry.strides, geometry.dilations, list(geometry.pre), list(geometry.post))
    result = pooling.pool(net, x, "max", sizes, geometry, ceil_mode=call.flag("ceil_mode"))
    places = places_of_maxima(net, x, result, sizes, given)
    cells = layers.cast(net, call.size_value(product(x.dims[2:])), "int64")
    places = layers.binary(net, "mod", places, cells)
    return [layers.reshape(net, value, call.result_dims) for value in (result, places)]


@aten_op("avg_pool1d.default", "avg_pool2d.default", "avg_pool3d.default")
def average_pool(net: Network, call: Call) -> Value:
    axes = _axes(call)
    sizes, geometry = _geometry(call, axes)
    x, ceil_mode = _batched(net, call.value("self"), axes), call.flag("ceil_mode")
    if call.given("divisor_override") and "divisor_override" in call.arguments:

        def average(x: Value) -> Value:
            return pooling.mean_of_whole_windows(net, x, sizes, geometry, ceil_mode=ceil_mode)

        count, divisor = math.prod(sizes), call.integer("divisor_override")
        if is_float(x.element):
            mean = average(x)
            result = layers.binary(net, "prod", mean, layers.scalar_like(net, count / divisor, mean))
        else:
            result = _whole_quotients(net, x, average, count, divisor)
    else:
        excludes = not call.flag("count_include_pad")
        result = pooling.pool(net, x, "average", sizes, geometry, ceil_mode=ceil_mode, excludes_padding=excludes)
    return layers.reshape(net, result, call.result_dims)


def _whole_quotients(net: Network, x: Value, average: Callable[[Value], Value], count: int, divisor: int) -> Value:
    """Sums of integers over a number, towards zero: a mean of integers has lost what another divisor would keep."""
    mean = average(layers.cast(net, x, "float64"))
    total = layers.unary(net, "round", layers.binary(net, "prod", mean, layers.scalar_like(net, count, mean)))
    quotient = layers.binary(net, "div", total, layers.scalar_like(net, divisor, total))
    return layers.cast(net, quotient, x.element)


@aten_op(
    "adaptive_avg_pool1d.default",
    "adaptive_avg_pool2d.default",
    "adaptive_avg_pool3d.default",
    "_adaptive_avg_pool2d.default",
    "_adaptive_avg_pool3d.default",
)
def adaptive_average(net: Network, call: Call) -> Value:
    return _adaptive(net, call, "avg")


@aten_op("adaptive_max_pool1d.default", "adaptive_max_pool2d.default", "adaptive_max_pool3d.default")
def adaptive_maximum(net: Network, call: Call) -> Sequence[Value]:
    """The largest elements, not where they are."""
    return [_adaptive(net, call, "max")]


def _adaptive(net: Network, call: Call, kind: str) -> Value:
    """Each axis in as many parts as asked for; parts of different lengths overlap, and are reduced one by one."""
    x, axes = call.value("self"), _axes(call)
    wanted = call.result_dims[-axes:]
    lead = x.rank - axes
    if all(one == 1 for one in wanted):
        return layers.reduce(net, kind, x, list(range(lead, x.rank)))
    for axis, count in enumerate(wanted, lead):
        x = _parts_reduced(net, call, x, axis, count, kind)
    return x


def _parts_reduced(net: Network, call: Call, x: Value, axis: int, count: Dim, kind: str) -> Value:
    length = x.dims[axis]
    if count == length:
        return x
    if not isinstance(count, int):
        raise call.unsupported("how many parts it makes must be known when the engine is built")
    whole = length // count
    if whole * count == length:
        apart = layers.reshape(net, x, [*x.dims[:axis], count, whole, *x.dims[axis + 1 :]])
        return layers.reduce(net, kind, apart, [axis + 1], keep_dims=False)
    edges = [(floor_div(k * length, count), ceil_div((k + 1) * length, count)) for k in range(count)]
    parts = [layers.reduce(net, kind, layers.along(net, x, axis, low, high - low), [axis]) for low, high in edges]
    return layers.concatenate(net, parts, axis)


@aten_op("col2im.default")
def columns_to_image(net: Network, call: Call) -> Value:
    """Overlapping blocks added up: a transposed convolution in which each row of a column has a kernel with one 1."""
    x, image = call.value("self"), call.integers("output_size")
    block, dilations, pads, strides = (call.integers(name) for name in ("kernel_size", "dilation", "padding", "stride"))
    batched = x if x.rank == 3 else layers.unsqueeze(net, x, [0])
    cells, rows = math.prod(block), batched.dims[1]
    if not isinstance(rows, int):
        raise call.unsupported("the number of its channels must be known when the engine is built")
    frames = [
        (length + 2 * pad - 1 - dilation * (size - 1)) // stride + 1
        for length, size, stride, dilation, pad in zip(image, block, strides, dilations, pads, strict=True)
    ]
    covered = [
        (count - 1) * stride + 1 + dilation * (size - 1) - 2 * pad
        for count, size, stride, dilation, pad in zip(frames, block, strides, dilations, pads, strict=True)
    ]
    ones = np.tile(np.eye(cells).reshape(cells, 1, *block), (rows // cells, 1, 1, 1))
    result = net.emit(
        "deconvolution",
        [
            layers.reshape(net, batched, [batched.dims[0], rows, *frames]),
            net.constant(ones.astype(layers.numpy_dtype(x.element))),
            None,
        ],
        stride=strides,
        dilation=dilations,
        pre_padding=pads,
        post_padding=pads,
        output_padding=[length - reached for length, reached in zip(image, covered, strict=True)],
        num_groups=rows // cells,
    )
    return layers.reshape(net, result, call.result_dims)
