"""Parts of tensors and tensors from parts: Slice, Split, Concat, Pad."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mlirt.dialects.length_requirements import at_least, equal, multiple
from mlirt.dialects.symbolic import Dim, ceil_div
from mlirt.dialects.trt.require import RequireOp
from mlirt.frontend.importing import layers
from mlirt.frontend.importing.data_dependent_sizes import elements_of, require_lengths, sizes_of
from mlirt.frontend.importing.network import Network, Value
from mlirt.frontend.importing.number_arrays import Array
from mlirt.frontend.importing.slice_bounds import window
from mlirt.frontend.onnx.handlers import onnx_op
from mlirt.frontend.onnx.node import Node
from mlirt.frontend.onnx.run_time_axes import are_of_run
from mlirt.frontend.onnx.run_time_parts import (
    padded_along_axes_of_run,
    padded_at_run_time,
    sliced_along_axes_of_run,
    sliced_at_run_time,
)

_PAD_MODES = ("constant", "reflect", "edge", "wrap")


@onnx_op("Slice")
def slice_(net: Network, node: Node) -> Value:
    x = node.input(0)
    if node.opset < 10:
        starts: list[Dim] = list(node.integers("starts"))
        ends: list[Dim] = list(node.integers("ends"))
        axes, steps = node.integers("axes", range(len(starts))), [1] * len(starts)
    else:
        if are_of_run(node, 3):
            return sliced_along_axes_of_run(net, node)
        known = [node.known_dims(1), node.known_dims(2)]
        axes = node.known_integers(3, "the axes") or list(range(len(elements_of(net, node, node.input(1)))))
        given = node.optional(4)
        steps = [1] * len(axes) if given is None else None if given.array is None else _integers(given.array)
        if steps is None or any(dims is None or None in dims for dims in known):
            return sliced_at_run_time(net, node, axes, steps)
        starts, ends = _bounds(node, 1, "the starts"), _bounds(node, 2, "the ends")
    if not len(starts) == len(ends) == len(axes) == len(steps):
        raise node.invalid(
            "expected equal numbers of starts, ends, axes and steps, got "
            f"{len(starts)}, {len(ends)}, {len(axes)} and {len(steps)}"
        )
    if 0 in steps:
        raise node.invalid("expected steps other than 0")
    first: list[Dim] = [0] * x.rank
    size = list(x.dims)
    stride = [1] * x.rank
    for k, (axis, start, end, step) in enumerate(zip(axes, starts, ends, steps, strict=True)):
        axis = node.from_front(axis, x.rank)
        if net.moves(start) or net.moves(end):
            x = _moving_window(net, node, x, axis, (k, end - start, step))
            size[axis] = x.dims[axis]
            continue
        first[axis], size[axis] = window(x.dims[axis], start, end, step)
        stride[axis] = step
    return layers.slice_of(net, x, first, size, stride)


def _moving_window(net: Network, node: Node, x: Value, axis: int, part: tuple[int, Dim, int]) -> Value:
    """A window of fixed length whose place changes from iteration to iteration of a loop; it must lie inside of the
    axis.
    """
    k, size, step = part
    if not isinstance(size, int) or size < 1 or step != 1:
        raise node.unsupported(f"the length {size} of a part that moves from iteration to iteration must be a number")
    starts = layers.cast(net, node.input(1), "int64")
    start = layers.reshape(net, layers.along(net, starts, 0, k, 1), [1])
    ends = layers.binary(net, "sum", layers.reshape(net, start, []), net.constant(np.array(size, np.int64)))
    fits = layers.binary(net, "less_equal", ends, layers.length_of(net, x, axis))
    net.append_at(RequireOp(net.ssa(fits), f"{node.label}: a part reaches beyond the end of axis {axis}"))
    places = layers.binary(net, "sum", start, layers.counting(net, "int64", size))
    return net.emit("gather", [x, places], axis=axis)


def _bounds(node: Node, k: int, what: str) -> list[Dim]:
    dims = node.known_dims(k)
    if dims is None or any(dim is None for dim in dims):
        raise node.needed(k, what)
    return [dim for dim in dims if dim is not None]


@onnx_op("Split")
def split(net: Network, node: Node) -> Sequence[Value]:
    x = node.input(0)
    axis = node.axis("axis", 0, x.rank)
    sizes = _split_sizes(net, node, axis)
    require_parts(net, node, axis, sizes)
    results: list[Value] = []
    start: Dim = 0
    for size in sizes:
        results.append(layers.along(net, x, axis, start, size))
        start = start + size
    return results


def require_parts(net: Network, node: Node, axis: int, sizes: Sequence[Dim]) -> None:
    """Parts are not negative and make up the axis that they are cut from."""
    total: Dim = 0
    for size in sizes:
        total = total + size
        require_lengths(net, node, at_least("", "a part would have the length {left}", size, 0))
    parts = " and ".join(map(str, sizes))
    fault = f"its parts {parts} add up to {{left}}, but axis {axis} has length {{right}}"
    require_lengths(net, node, equal("", "", total, node.input(0).dims[axis], fault))


def _split_sizes(net: Network, node: Node, axis: int) -> list[Dim]:
    length = node.input(0).dims[axis]
    given = node.integers("split") if node.has("split") else None
    if given is not None:
        return list(given)
    if node.optional(1) is not None:
        return sizes_of(net, node, node.input(1))
    count = node.integer("num_outputs", len(node.outputs)) if node.opset >= 18 else len(node.outputs)
    if count != len(node.outputs) or count < 1:
        raise node.invalid(f"expected one output for each of {count} parts, but there are {len(node.outputs)}")
    whole = length // count
    if whole * count == length:
        return [whole] * count
    if node.opset < 18:
        _require_equal_parts(net, node, axis, count)
        return [whole] * count
    part = ceil_div(length, count)
    return [*[part] * (count - 1), length - (count - 1) * part]


def _require_equal_parts(net: Network, node: Node, axis: int, count: int) -> None:
    fault = f"the length {{left}} of axis {axis} cannot be split into {count} equal parts"
    require_lengths(net, node, multiple("", fault, node.input(0).dims[axis], count))


@onnx_op("Concat")
def concat(net: Network, node: Node) -> Value:
    values = node.present()
    if not values:
        raise node.invalid("expected at least one input")
    axis = node.integer("axis", 1 if node.opset < 4 else None)
    return layers.concatenate(net, values, node.from_front(axis, values[0].rank))


@onnx_op("Pad")
def pad(net: Network, node: Node) -> Value:
    x = node.input(0)
    mode = node.text("mode", "constant")
    if mode not in _PAD_MODES:
        raise node.invalid(f"expected mode as one of {', '.join(_PAD_MODES)}, got {mode!r}")
    if node.opset < 11:
        pads: list[Dim] = list(node.integers("pads" if node.opset > 1 else "paddings"))
        axes: list[int] | None = None
        value = net.constant(np.array(node.real("value", 0.0), layers.numpy_dtype(x.element)))
    else:
        value = node.optional(2)
        if are_of_run(node, 3):
            return padded_along_axes_of_run(net, node, mode, value)
        axes = node.known_integers(3, "the axes")
        known = node.known_dims(1)
        if known is None or None in known:
            places = [node.from_front(axis, x.rank) for axis in (range(x.rank) if axes is None else axes)]
            return padded_at_run_time(net, node, places, mode, value)
        pads = _bounds(node, 1, "the pads")
    axes = [node.from_front(axis, x.rank) for axis in (range(x.rank) if axes is None else axes)]
    if len(pads) != 2 * len(axes):
        raise node.invalid(f"expected {2 * len(axes)} pads, got {len(pads)}")
    pre: list[Dim] = [0] * x.rank
    post: list[Dim] = [0] * x.rank
    for k, axis in enumerate(axes):
        pre[axis], post[axis] = pads[k], pads[len(axes) + k]
    return layers.pad(net, x, pre, post, mode, value)


def _integers(array: Array) -> list[int]:
    return [int(element) for element in array.reshape(-1)]
