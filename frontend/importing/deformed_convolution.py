"""A convolution whose samples lie at given distances from where they usually do, between the elements of the image."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_types import numpy_dtype
from mlirt.frontend.importing import layers
from mlirt.frontend.importing.network import Network, Value


@dataclass(frozen=True)
class Deformed:
    """The window along both axes: `pads` are those before the image. Each group of channels has offsets of its own."""

    strides: Sequence[int]
    pads: Sequence[int]
    dilations: Sequence[int]
    groups: int
    offset_groups: int


def convolve_deformed(
    net: Network,
    x: Value,
    kernel: Value,
    offset: Value,
    mask: Value | None,
    bias: Value | None,
    window: Deformed,
) -> Value:
    """A product of the kernel with samples of x [n, c, h, w], which `mask` weighs.

    offset: [n, 2 * offset_groups * kernel, h', w'], down and to the right; mask: [n, offset_groups * kernel, h', w'].
    Behind the edge lie zeros, which samples less than 1 away from it are interpolated with.
    """
    batch, channels = x.dims[:2]
    outputs, inner, rows, columns = (int(dim) for dim in kernel.dims if isinstance(dim, int))
    points, groups, parts = rows * columns, window.groups, window.offset_groups
    height, width = offset.dims[2:]
    apart = layers.reshape(net, offset, [batch, parts, points, 2, height, width])
    grid = [_normalised(net, apart, x, axis, (rows, columns), window) for axis in (1, 0)]  # of the last axis first
    places = layers.concatenate(net, [layers.unsqueeze(net, one, [one.rank]) for one in grid], 5)
    samples = net.emit(
        "grid_sample",
        [
            layers.reshape(net, x, [batch * parts, channels // parts, *x.dims[2:]]),
            layers.reshape(net, places, [batch * parts, points * height, width, 2]),
        ],
        kind="linear",
        mode="fill",
        align_corners=False,
    )
    if mask is not None:
        each = layers.reshape(net, samples, [batch, parts, channels // parts, points, height, width])
        weights = layers.reshape(net, mask, [batch, parts, 1, points, height, width])
        samples = layers.binary(net, "prod", each, weights)
    lines = layers.reshape(net, samples, [batch, groups, inner * points, height * width])
    matrix = layers.reshape(net, kernel, [1, groups, outputs // groups, inner * points])
    found = layers.reshape(net, layers.matrix_multiply(net, matrix, lines), [batch, outputs, height, width])
    return found if bias is None else layers.binary(net, "sum", found, layers.reshape(net, bias, [1, outputs, 1, 1]))


def _normalised(net: Network, apart: Value, x: Value, axis: int, sizes: Sequence[int], window: Deformed) -> Value:
    """Where the samples lie along an axis, from -1 at the start of the first element to 1 at the end of the last."""
    count, length = apart.dims[4 + axis], x.dims[2 + axis]
    points = np.indices(tuple(sizes))[axis].reshape(-1, 1, 1)
    first = points * window.dilations[axis] - window.pads[axis]
    shape: list[Dim] = [1, 1, 1]
    shape[1 + axis] = count
    steps = layers.cast(net, layers.counting(net, "int64", count, 0, window.strides[axis]), apart.element)
    usual = layers.binary(
        net,
        "sum",
        net.constant(first.astype(numpy_dtype(apart.element))),
        layers.reshape(net, steps, shape),
    )
    shift = layers.squeeze(net, layers.along(net, apart, 3, axis, 1), [3])
    place = layers.binary(net, "sum", *layers.aligned(net, [shift, usual]))
    doubled = layers.binary(net, "prod", place, layers.scalar_like(net, 2, place))
    from_edge = layers.binary(net, "sum", doubled, layers.scalar_like(net, 1, place))
    if isinstance(length, int):
        size = layers.scalar_like(net, length, place)
    else:
        size = layers.with_rank(net, layers.cast(net, layers.length_of(net, x, 2 + axis), place.element), place.rank)
    return layers.binary(net, "sub", layers.binary(net, "div", from_edge, size), layers.scalar_like(net, 1, place))
