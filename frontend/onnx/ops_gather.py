"""Reads and writes at indices: Gather, Scatter and their kin."""

from __future__ import annotations

import numpy as np

from mlirt.dialects.length_requirements import at_least, equal, multiple
from mlirt.dialects.symbolic import Dim, minimum, product
from mlirt.dialects.symbolic_bounds import at_most
from mlirt.frontend.importing import layers
from mlirt.frontend.importing.attention import written_from
from mlirt.frontend.importing.data_dependent_sizes import coordinates, require_lengths, true_positions
from mlirt.frontend.importing.network import Network, Value
from mlirt.frontend.onnx.handlers import onnx_op
from mlirt.frontend.onnx.node import Node

_REDUCTIONS = ("none", "add", "mul", "max", "min")


@onnx_op("Gather")
def gather(net: Network, node: Node) -> Value:
    data, indices = node.input(0), node.input(1)
    axis = node.axis("axis", 0, data.rank)
    array = indices.array
    if array is not None and array.size == 1 and data.array is None:
        return _one(net, node, data, axis, int(array.reshape(-1)[0]), array.ndim)
    return net.emit("gather", [data, indices], mode="default", axis=axis)


def _one(net: Network, node: Node, data: Value, axis: int, index: int, rank: int) -> Value:
    """A gather of one position is a slice, which later passes see through."""
    length = data.dims[axis]
    if isinstance(length, int) and not -length <= index < length:
        raise node.invalid(f"index {index} is outside of dimension {axis}, which has the length {length}")
    part = layers.along(net, data, axis, length + index if index < 0 else index, 1)
    return layers.reshape(net, part, [*data.dims[:axis], *[1] * rank, *data.dims[axis + 1 :]])


@onnx_op("GatherElements")
def gather_elements(net: Network, node: Node) -> Value:
    data = node.input(0)
    return net.emit("gather", [data, node.input(1)], mode="element", axis=node.axis("axis", 0, data.rank))


@onnx_op("GatherND")
def gather_nd(net: Network, node: Node) -> Value:
    return net.emit(
        "gather", [node.input(0), _coordinates(node)], mode="nd", num_elementwise_dims=node.integer("batch_dims", 0)
    )


@onnx_op("Scatter", "ScatterElements")
def scatter_elements(net: Network, node: Node) -> Value:
    data = node.input(0)
    operands = [data, node.input(1), node.input(2)]
    return net.emit(
        "scatter", operands, mode="element", axis=node.axis("axis", 0, data.rank), reduction=_reduction(node)
    )


@onnx_op("ScatterND")
def scatter_nd(net: Network, node: Node) -> Value:
    return net.emit(
        "scatter", [node.input(0), _coordinates(node), node.input(2)], mode="nd", reduction=_reduction(node)
    )


def _coordinates(node: Node) -> Value:
    """Indices whose last dimension, the coordinates of an element or a slice, has a known length."""
    indices = node.input(1)
    if indices.rank and not isinstance(indices.dims[-1], int):
        raise node.unsupported(
            "the last dimension of its indices, which says how many coordinates they have, is dynamic: "
            "give its length when building (input_shapes)"
        )
    return indices


def _reduction(node: Node) -> str:
    reduction = node.text("reduction", "none")
    if reduction not in _REDUCTIONS:
        raise node.invalid(f"expected reduction as one of {', '.join(_REDUCTIONS)}, got {reduction!r}")
    return reduction


@onnx_op("ReverseSequence")
def reverse_sequence(net: Network, node: Node) -> Value:
    """The first `sequence_lens[b]` steps of sequence b in the opposite order, the others as they are."""
    given, lengths = node.input(0), layers.cast(net, node.input(1), "int64")
    batch, time = node.integer("batch_axis", 1), node.integer("time_axis", 0)
    if {batch, time} != {0, 1} or given.rank < 2:
        raise node.invalid(f"expected batch_axis and time_axis as 0 and 1, got {batch} and {time}")
    swapped = [1, 0, *range(2, given.rank)]
    x = given if batch == 0 else layers.transpose(net, given, swapped)
    steps = layers.reshape(net, layers.counting(net, "int64", x.dims[1]), [1, x.dims[1]])
    ends = layers.reshape(net, lengths, [x.dims[0], 1])
    mirrored = layers.binary(
        net, "sub", layers.binary(net, "sub", ends, net.constant(np.ones((1, 1), np.int64))), steps
    )
    position = layers.select(net, layers.binary(net, "less", steps, ends), mirrored, steps)
    indices = layers.reshape(net, position, [x.dims[0], x.dims[1], 1])
    result = net.emit("gather", [x, indices], mode="nd", num_elementwise_dims=1)
    return result if batch == 0 else layers.transpose(net, result, swapped)


@onnx_op("DepthToSpace")
def depth_to_space(net: Network, node: Node) -> Value:
    x, block = node.input(0), node.integer("blocksize")
    batch, channels, height, width = _image_dims(node, x)
    if block < 1:
        raise node.invalid(f"expected a positive blocksize, got {block}")
    fault = f"{{left}} channels do not make blocks of {block} x {block}"
    require_lengths(net, node, multiple("", fault, channels, block * block))
    depth = channels // (block * block)
    mode = _block_mode(node)
    blocks: list[Dim] = [block, block, depth] if mode == "DCR" else [depth, block, block]
    parts = layers.reshape(net, x, [batch, *blocks, height, width])
    order = [0, 3, 4, 1, 5, 2] if mode == "DCR" else [0, 1, 4, 2, 5, 3]
    return layers.reshape(net, layers.transpose(net, parts, order), [batch, depth, height * block, width * block])


@onnx_op("SpaceToDepth")
def space_to_depth(net: Network, node: Node) -> Value:
    x, block = node.input(0), node.integer("blocksize")
    batch, channels, height, width = _image_dims(node, x)
    if block < 1:
        raise node.invalid(f"expected a positive blocksize, got {block}")
    mode = _block_mode(node)
    parts = layers.reshape(net, x, [batch, channels, height // block, block, width // block, block])
    moved = layers.transpose(net, parts, [0, 3, 5, 1, 2, 4] if mode == "DCR" else [0, 1, 3, 5, 2, 4])
    return layers.reshape(net, moved, [batch, channels * block * block, height // block, width // block])


def _block_mode(node: Node) -> str:
    mode = node.text("mode", "DCR")
    if mode not in ("DCR", "CRD"):
        raise node.invalid(f"expected mode as 'DCR' or 'CRD', got {mode!r}")
    return mode


def _image_dims(node: Node, x: Value) -> tuple[Dim, Dim, Dim, Dim]:
    if x.rank != 4:
        raise node.invalid(f"expected an input of 4 dimensions, but it has {x.rank}")
    batch, channels, height, width = x.dims
    return batch, channels, height, width


@onnx_op("TensorScatter", since=24)
def tensor_scatter(net: Network, node: Node) -> Value:
    """New steps written into a cache, for each sample of the batch from its own position on."""
    cache, update, start = node.input(0), node.input(1), node.optional(2)
    axis, mode = node.axis("axis", -2, cache.rank), node.text("mode", "linear")
    if axis == 0 or mode not in ("linear", "circular"):
        raise node.invalid(
            f"expected an axis behind the batch and mode 'linear' or 'circular', got {axis} and {mode!r}"
        )
    order = [0, axis, *(k for k in range(1, cache.rank) if k != axis)]
    batch, steps, capacity = update.dims[0], update.dims[axis], cache.dims[axis]
    require_lengths(net, node, equal("", "", cache.dims[0], batch, "its update has {right} samples, its cache {left}"))
    fault = "its update has {right} steps, its cache only {left}"
    require_lengths(net, node, at_least("", fault, capacity, steps))
    circle = capacity if mode == "circular" else None
    if circle is not None and not isinstance(circle, int):
        raise node.unsupported("the circular mode needs a length that is known when the engine is built")
    by_steps, added = (layers.transpose(net, x, order) for x in (cache, update))
    written = written_from(net, by_steps, added, start, circle)
    return layers.transpose(net, written, [order.index(k) for k in range(cache.rank)])


@onnx_op("NonZero")
def non_zero(net: Network, node: Node) -> Value:
    x = node.input(0)
    if x.rank == 0:
        raise node.invalid("expected an input of at least 1 dimension, but it has none")
    if x.array is not None:
        return net.constant(np.stack(np.nonzero(x.array)).astype(np.int64))
    flags = x if x.element_name == "bool" else layers.cast(net, x, "bool")
    return coordinates(net, x.dims, true_positions(net, flags, "nonzero"))


@onnx_op("Compress", since=9)
def compress(net: Network, node: Node) -> Value:
    """The slices (without an axis: the elements) whose condition is true; a short condition is false behind its end."""
    x, condition = node.input(0), node.input(1)
    flat = not node.has("axis")
    x = layers.reshape(net, x, [product(x.dims)]) if flat else x
    axis = 0 if flat else node.axis("axis", 0, x.rank)
    given, length = condition.dims[0], x.dims[axis]
    if not at_most(given, length):
        # What the condition says of elements behind the end counts for nothing.
        condition = layers.along(net, condition, 0, 0, minimum(given, length))
    if condition.array is not None:
        chosen = net.constant(np.flatnonzero(condition.array).astype(np.int64))
    else:
        chosen = true_positions(net, condition, "selected")
    return net.emit("gather", [x, chosen], mode="default", axis=axis)
