"""Samples in images at places between the cells, for regions of interest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from mlirt.frontend.importing import layers
from mlirt.frontend.importing.network import Network, Value
from mlirt.frontend.onnx.node import Node


@dataclass(frozen=True)
class Side:
    """Along one axis for each sample of each region: a neighbouring cell, and its weight."""

    cell: Value
    weight: Value


def span(net: Network, node: Node, regions: Value, axis: int) -> tuple[Value, Value]:
    """Where each region starts along an axis of the image, and how long it is; regions are x1, y1, x2, y2."""
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
    return low, extent


def neighbours(net: Network, position: Value, length: Value) -> tuple[Side, Side]:
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
    return Side(layers.cast(net, low, "int64"), weights[0]), Side(layers.cast(net, high, "int64"), weights[1])


def corners(
    net: Network, image: Value, owners: Value, vertical: Sequence[Side], horizontal: Sequence[Side]
) -> list[Value]:
    """The parts that the four cells around each sample have in it; `image` has its channels last."""
    return [_corner(net, image, owners, *pair) for pair in product(vertical, horizontal)]


def _corner(net: Network, image: Value, owners: Value, vertical: Side, horizontal: Side) -> Value:
    """One corner's part of all samples: regions x rows x columns x channels."""
    regions, rows, columns = vertical.cell.dims[0], vertical.cell.dims[1], horizontal.cell.dims[1]
    grid = [regions, rows, columns]
    owner = layers.reshape(net, layers.cast(net, owners, "int64"), [regions, 1, 1])
    parts = [owner, layers.unsqueeze(net, vertical.cell, [2]), layers.unsqueeze(net, horizontal.cell, [1])]
    indices = [layers.unsqueeze(net, layers.expand(net, part, grid), [3]) for part in parts]
    values = net.emit("gather", [image, layers.concatenate(net, indices, 3)], mode="nd")
    weight = layers.binary(
        net, "prod", layers.unsqueeze(net, vertical.weight, [2]), layers.unsqueeze(net, horizontal.weight, [1])
    )
    return layers.binary(net, "prod", values, layers.cast(net, layers.unsqueeze(net, weight, [3]), values.element))
