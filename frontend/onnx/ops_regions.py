"""Regions of interest: parts of images, resampled to one size."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mlirt.frontend.importing import layers
from mlirt.frontend.importing.network import Network, Value
from mlirt.frontend.onnx.handlers import onnx_op
from mlirt.frontend.onnx.loops import Iteration, LoopMaker
from mlirt.frontend.onnx.node import Node
from mlirt.frontend.onnx.region_samples import Side, corners, neighbours, span

_COMBINED_BY = {"avg": "sum", "max": "max"}


@onnx_op("RoiAlign", since=10)
def roi_align(net: Network, node: Node) -> Value:
    """Each bin of a region is the mean, or the largest, of samples that are interpolated in the image."""
    image, regions, owners = (node.input(k) for k in range(3))
    samples, mode = node.integer("sampling_ratio", 0), node.text("mode", "avg")
    if image.rank != 4 or regions.rank != 2 or mode not in _COMBINED_BY:
        raise node.invalid(f"expected N x C x H x W, R x 4 and mode 'avg' or 'max', got {image.type} and {mode!r}")
    bins = [node.integer("output_height", 1), node.integer("output_width", 1)]
    channels_last = layers.transpose(net, image, [0, 2, 3, 1])
    if samples < 1:
        return layers.transpose(net, _adaptive(net, node, channels_last, bins, mode), [0, 3, 1, 2])
    vertical, horizontal = (_samples(net, node, axis, bins[axis], samples) for axis in (0, 1))
    total = _combined(net, mode, corners(net, channels_last, owners, vertical, horizontal))
    apart = layers.reshape(net, total, [regions.dims[0], bins[0], samples, bins[1], samples, image.dims[1]])
    return layers.transpose(net, layers.reduce(net, mode, apart, [2, 4], keep_dims=False), [0, 3, 1, 2])


def _combined(net: Network, mode: str, parts: list[Value]) -> Value:
    total = parts[0]
    for part in parts[1:]:
        total = layers.binary(net, _COMBINED_BY[mode], total, part)
    return total


def _samples(net: Network, node: Node, axis: int, bins: int, samples: int) -> tuple[Side, Side]:
    """The cells before and behind each sample along an axis, the same number of samples in each bin."""
    low, extent = span(net, node, node.input(1), axis)
    places = (np.arange(bins * samples) + 0.5) / (bins * samples)
    step = net.constant(places.astype(layers.numpy_dtype(low.element))[None])
    position = layers.binary(net, "sum", low, layers.binary(net, "prod", extent, step))
    return neighbours(net, position, layers.length_of(net, node.input(0), 2 + axis))


@dataclass(frozen=True)
class _Bins:
    """Along one axis: where each bin of each region starts, how long the bins are, how many samples they take."""

    starts: Value
    length: Value
    counts: Value
    most: Value

    def sample(self, net: Network, number: Value, cells: Value) -> tuple[tuple[Side, Side], Value]:
        """The cells around one sample of every bin, and whether a region has so many."""
        index = layers.cast(net, number, self.length.element)
        middle = layers.binary(net, "sum", index, layers.scalar_like(net, 0.5, index))
        offset = layers.binary(net, "div", layers.binary(net, "prod", middle, self.length), self.counts)
        counts = layers.binary(net, "less", index, self.counts)
        return neighbours(net, layers.binary(net, "sum", self.starts, offset), cells), counts


def _bins(net: Network, node: Node, axis: int, bins: int) -> _Bins:
    """As many samples as a bin of the region has cells, rounded up."""
    low, extent = span(net, node, node.input(1), axis)
    length = layers.binary(net, "div", extent, layers.scalar_like(net, bins, extent))
    zero = layers.scalar_like(net, 0.0, length)
    counts = layers.binary(net, "max", layers.unary(net, "ceil", length), zero)
    numbers = net.constant(np.arange(bins).astype(layers.numpy_dtype(low.element))[None])
    starts = layers.binary(net, "sum", low, layers.binary(net, "prod", numbers, length))
    # With a zero behind the regions there is a largest count even of no region.
    most = layers.reduce(net, "max", layers.concatenate(net, [counts, zero], 0), [0, 1], keep_dims=False)
    return _Bins(starts, length, counts, layers.cast(net, most, "int64"))


def _adaptive(net: Network, node: Node, image: Value, bins: list[int], mode: str) -> Value:
    """A loop with one sample of every bin in each iteration; regions with fewer samples take no part in the last
    ones.
    """
    owners = node.input(2)
    rows, columns = (_bins(net, node, axis, bins[axis]) for axis in (0, 1))
    lengths = [layers.length_of(net, node.input(0), 2 + axis) for axis in (0, 1)]
    width = layers.binary(net, "max", columns.most, net.constant(np.array(1, np.int64)))
    nothing = layers.scalar_like(net, 0.0 if mode == "avg" else -np.inf, image)
    start = layers.expand(net, nothing, [node.input(1).dims[0], *bins, image.dims[3]])

    def iteration(counter: Value, carried: list[Value]) -> Iteration:
        row = layers.binary(net, "floor_div", counter, width)
        column = layers.binary(net, "sub", counter, layers.binary(net, "prod", row, width))
        vertical, has_row = rows.sample(net, row, lengths[0])
        horizontal, has_column = columns.sample(net, column, lengths[1])
        sample = _combined(net, mode, corners(net, image, owners, vertical, horizontal))
        taken = layers.unsqueeze(net, layers.binary(net, "and", has_row, has_column), [2, 3])
        part = layers.select(net, taken, sample, nothing)
        return Iteration(None, [layers.binary(net, _COMBINED_BY[mode], carried[0], part)], [])

    iterations = layers.binary(net, "prod", rows.most, columns.most)
    (total,), _ = LoopMaker(net, node, iterations, None, [start], iteration).make()
    number = layers.unsqueeze(net, layers.binary(net, "prod", rows.counts, columns.counts), [2, 3])
    number = layers.cast(net, number, image.element)
    if mode == "avg":
        return layers.binary(net, "div", total, layers.binary(net, "max", number, layers.scalar_like(net, 1, number)))
    is_empty = layers.binary(net, "equal", number, layers.scalar_like(net, 0, number))
    return layers.select(net, is_empty, layers.scalar_like(net, 0, total), total)
