"""Regions of interest: parts of images, resampled to one size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mlirt.frontend.onnx import layers
from mlirt.frontend.onnx.handlers import onnx_op
from mlirt.frontend.onnx.network import Network, Value
from mlirt.frontend.onnx.node import Node


@dataclass(frozen=True)
class _Side:
    """Along one axis for each sample of each region: a neighbouring cell, and its weight."""

    cell: Value
    weight: Value


@onnx_op("RoiAlign", since=10)
def roi_align(net: Network, node: Node) -> Value:
    """Each bin of a region is the mean, or the largest, of samples that are interpolated in the image."""
    image, regions, owners = (node.input(k) for k in range(3))
    samples, mode = node.integer("sampling_ratio", 0), node.text("mode", "avg")
    if image.rank != 4 or regions.rank != 2 or mode not in ("avg", "max"):
        raise node.invalid(f"expected N x C x H x W, R x 4 and mode 'avg' or 'max', got {image.type} and {mode!r}")
    if samples < 1:
        raise node.unsupported("its number of samples depends on the size of each region; give a sampling_ratio")
    bins = [node.integer("output_height", 1), node.integer("output_width", 1)]
    sides = [_sides(net, node, image, regions, axis, bins[axis], samples) for axis in (0, 1)]
    channels_last = layers.transpose(net, image, [0, 2, 3, 1])
    corners = [
        _corner(net, channels_last, owners, vertical, horizontal) for vertical in sides[0] for horizontal in sides[1]
    ]
    total = corners[0]
    for corner in corners[1:]:
        total = layers.binary(net, "sum" if mode == "avg" else "max", total, corner)
    apart = layers.reshape(net, total, [regions.dims[0], bins[0], samples, bins[1], samples, image.dims[1]])
    return layers.transpose(net, layers.reduce(net, mode, apart, [2, 4], keep_dims=False), [0, 3, 1, 2])


def _sides(
    net: Network, node: Node, image: Value, regions: Value, axis: int, bins: int, samples: int
) -> tuple[_Side, _Side]:
    """The cells before and behind each sample along an axis; regions are x1, y1, x2, y2."""
    first, last = (layers.along(net, regions, 1, place, 1) for place in (1 - axis, 3 - axis))
    half = node.text("coordinate_transformation_mode", "half_pixel") == "half_pixel" if node.opset >= 16 else False
    scale = layers.scalar_like(net, node.real("spatial_scale", 1.0), first)
    low, high = (layers.binary(net, "prod", value, scale) for value in (first, last))
    if half:
        low = layers.binary(net, "sub", low, layers.scalar_like(net, 0.5, low))
        high = layers.binary(net, "sub", high, layers.scalar_like(net, 0.5, high))
    extent = layers.binary(net, "sub", high, low)
    if not half:
        extent = layers.binary(net, "max", extent, layers.scalar_like(net, 1.0, extent))
    places = (np.arange(bins * samples) + 0.5) / (bins * samples)
    step = net.constant(places.astype(layers.numpy_dtype(low.element))[None])
    position = layers.binary(net, "sum", low, layers.binary(net, "prod", extent, step))
    return _neighbours(net, position, layers.length_of(net, image, 2 + axis))


def _neighbours(net: Network, position: Value, length: Value) -> tuple[_Side, _Side]:
    """Samples up to one cell outside take the edge; those farther away have no weight."""
    size = layers.cast(net, layers.reshape(net, length, [1, 1]), position.element)
    zero, one = (layers.scalar_like(net, number, position) for number in (0.0, 1.0))
    last = layers.binary(net, "sub", size, one)
    outside = layers.binary(
        net,
        "or",
        layers.binary(net, "less", position, layers.scalar_like(net, -1.0, position)),
        layers.binary(net, "greater", position, size),
    )
    inside = layers.binary(net, "min", layers.binary(net, "max", position, zero), last)
    low = layers.unary(net, "floor", inside)
    high = layers.binary(net, "min", layers.binary(net, "sum", low, one), last)
    behind = layers.binary(net, "sub", inside, low)
    before = layers.binary(net, "sub", one, behind)
    weights = [layers.select(net, outside, zero, weight) for weight in (before, behind)]
    return _Side(layers.cast(net, low, "int64"), weights[0]), _Side(layers.cast(net, high, "int64"), weights[1])


def _corner(net: Network, image: Value, owners: Value, vertical: _Side, horizontal: _Side) -> Value:
    """One corner's part of all samples: regions x rows x columns x channels."""
    regions, rows, columns = vertical.cell.dims[0], vertical.cell.dims[1], horizontal.cell.dims[1]
    grid = [regions, rows, columns]
    owner = layers.reshape(net, layers.cast(net, owners, "int64"), [regions, 1, 1])
    parts = [owner, layers.unsqueeze(net, vertical.cell, [2]), layers.unsqueeze(net, horizontal.cell, [1])]
    indices = [layers.unsqueeze(net, layers.expand(net, part, grid), [3]) for part in parts]
    values = net.emit("gather", [image, layers.concatenate(net, indices, 3)], mode="nd")
    weight = _product(net, [layers.unsqueeze(net, vertical.weight, [2]), layers.unsqueeze(net, horizontal.weight, [1])])
    return layers.binary(net, "prod", values, layers.cast(net, layers.unsqueeze(net, weight, [3]), values.element))


def _product(net: Network, factors: Sequence[Value]) -> Value:
    return layers.binary(net, "prod", factors[0], factors[1])
