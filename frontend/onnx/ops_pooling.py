"""Poolings: windows that slide, and whole channels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mlirt.dialects.symbolic import Dim, ceil_div, minimum
from mlirt.dialects.symbolic_bounds import at_most
from mlirt.dialects.tensor_types import is_float
from mlirt.dialects.window_arithmetic import PaddingMode, ShortInput, Window
from mlirt.frontend.onnx import layers
from mlirt.frontend.onnx.handlers import onnx_op
from mlirt.frontend.onnx.network import Network, Value
from mlirt.frontend.onnx.node import Node
from mlirt.frontend.onnx.ops_unpooling import places_of_maxima
from mlirt.frontend.onnx.windows import Geometry, geometry_of


@onnx_op("MaxPool")
def max_pool(net: Network, node: Node) -> Value | Sequence[Value]:
    x = node.input(0)
    result = pool(net, node, x, "max")
    if not node.wants(1):
        return result
    sizes = _window(node, x)
    return [result, places_of_maxima(net, node, x, result, sizes, geometry_of(node, sizes, x.dims[2:]))]


@onnx_op("AveragePool")
def average_pool(net: Network, node: Node) -> Value:
    return pool(net, node, node.input(0), "average", excludes_padding=not node.integer("count_include_pad", 0))


@onnx_op("LpPool")
def lp_pool(net: Network, node: Node) -> Value:
    """(sum of |x|^p)^(1/p): the mean of |x|^p times the window's volume, where cells of padding count as zeros."""
    p, x = _exponent(node), node.input(0)
    powers = _absolute_power(net, x, p)
    volume = 1
    for size in _window(node, x):
        volume *= size
    total = layers.binary(
        net,
        "prod",
        _mean_of_whole_windows(net, node, powers),
        layers.scalar_like(net, volume, x),
    )
    return _root(net, total, p)


def _mean_of_whole_windows(net: Network, node: Node, x: Value) -> Value:
    """The mean over the full window even where it overhangs: zeros behind the input make its cells."""
    sizes = _window(node, x)
    lengths = x.dims[2:]
    geometry = _ceiled(node, geometry_of(node, sizes, lengths), sizes, lengths)
    if geometry.mode != "explicit_round_up":
        return _pooled(net, x, "average", sizes, geometry, excludes_padding=False, counts_overhang=True)
    post: list[Dim] = []
    for axis, (size, length) in enumerate(zip(sizes, lengths, strict=True)):
        pads = geometry.pre[axis], geometry.post[axis]
        window = Window(size, geometry.strides[axis], geometry.dilations[axis], *pads, PaddingMode.EXPLICIT_ROUND_UP)
        post.append(pads[1] + window.overhang(length))
    padded = layers.pad(net, x, [0, 0, *geometry.pre], [0, 0, *post], "constant", layers.scalar_like(net, 0, x, 0))
    none = [0] * len(sizes)
    whole = Geometry(geometry.strides, geometry.dilations, none, none)
    result = _pooled(net, padded, "average", sizes, whole, excludes_padding=False)
    return _without_windows_behind(net, result, geometry, sizes, lengths)


@onnx_op("GlobalAveragePool")
def global_average_pool(net: Network, node: Node) -> Value:
    return layers.reduce(net, "avg", node.input(0), _spatial(node))


@onnx_op("GlobalMaxPool")
def global_max_pool(net: Network, node: Node) -> Value:
    return layers.reduce(net, "max", node.input(0), _spatial(node))


@onnx_op("GlobalLpPool")
def global_lp_pool(net: Network, node: Node) -> Value:
    p = _exponent(node)
    return _root(net, layers.reduce(net, "sum", _absolute_power(net, node.input(0), p), _spatial(node)), p)


def pool(net: Network, node: Node, x: Value, kind: str, excludes_padding: bool = True) -> Value:
    """A pooling with the attributes of `node`."""
    sizes = _window(node, x)
    geometry = _ceiled(node, geometry_of(node, sizes, x.dims[2:]), sizes, x.dims[2:])
    result = _pooled(net, x, kind, sizes, geometry, excludes_padding, counts_overhang=node.opset < 19)
    return _without_windows_behind(net, result, geometry, sizes, x.dims[2:])


def _pooled(
    net: Network,
    x: Value,
    kind: str,
    sizes: list[int],
    geometry: Geometry,
    excludes_padding: bool,
    counts_overhang: bool = False,
) -> Value:
    """A pooling.

    Where the padded input is shorter than the window by less than a stride, ONNX's formula rounds down and would leave
    no window; onnxruntime divides toward zero and has one. Its cells behind the pads count as padding before opset 19.
    """
    short = _short_input(geometry, sizes, x.dims[2:], counts_overhang and not excludes_padding)
    wide = len(sizes) == 1
    if wide:
        x, sizes, geometry = layers.unsqueeze(net, x, [2]), [1, *sizes], geometry.widened()
    result = net.emit(
        "pooling",
        [x],
        kind=kind,
        window=sizes,
        stride=geometry.strides,
        dilation=geometry.dilations,
        pre_padding=geometry.pre,
        post_padding=geometry.post,
        padding_mode=geometry.mode,
        average_count_excludes_padding=excludes_padding,
        **short,
    )
    return layers.squeeze(net, result, [2]) if wide else result


def _short_input(
    geometry: Geometry, sizes: Sequence[int], lengths: Sequence[Dim], counts_overhang: bool
) -> dict[str, str]:
    """The property of a pooling some of whose inputs may be too short; nothing where none can be."""
    how = ShortInput.PADDED if counts_overhang else ShortInput.OVERHANGING
    for axis, (size, length) in enumerate(zip(sizes, lengths, strict=True)):
        steps = size, geometry.strides[axis], geometry.dilations[axis]
        window = Window(*steps, geometry.pre[axis], geometry.post[axis], PaddingMode(geometry.mode), how)
        plain = replace(window, short_input=ShortInput.REFUSED)
        if window.takes_short_input and not at_most(-plain.spare_cells(length), 0):
            return {"short_input": str(how)}
    return {}


def _ceiled(node: Node, geometry: Geometry, sizes: Sequence[int], lengths: Sequence[Dim]) -> Geometry:
    """`ceil_mode`: a partial window at the end counts, unless it would start in the padding behind the input.

    The round-up mode of TensorRT keeps such a window; where lengths are numbers, pads that end with the last window
    that counts ask for the smaller output. Others are cut off by `_without_windows_behind`.
    """
    if (
        not node.integer("ceil_mode", 0)
        or geometry.mode != "explicit_round_down"
        or node.text("auto_pad", "NOTSET") == "VALID"
    ):
        return geometry
    for axis, (size, length) in enumerate(zip(sizes, lengths, strict=True)):
        stride, pre, post = geometry.strides[axis], geometry.pre[axis], geometry.post[axis]
        extent = 1 + geometry.dilations[axis] * (size - 1)
        if post + stride <= extent or not isinstance(length, int):
            continue
        count = -(-(length + pre + post - extent) // stride) + 1
        if (count - 1) * stride >= length + pre:
            geometry.post[axis] = post - ((length + pre + post - extent) - (count - 2) * stride)
    return Geometry(geometry.strides, geometry.dilations, geometry.pre, geometry.post, "explicit_round_up")


def _without_windows_behind(
    net: Network, result: Value, geometry: Geometry, sizes: Sequence[int], lengths: Sequence[Dim]
) -> Value:
    """The result of rounding up without windows that start behind the input, where only a run knows whether some do."""
    if geometry.mode != "explicit_round_up":
        return result
    counts = list(result.dims)
    for axis, (size, length) in enumerate(zip(sizes, lengths, strict=True)):
        stride, extent = geometry.strides[axis], 1 + geometry.dilations[axis] * (size - 1)
        if geometry.post[axis] + stride > extent and not isinstance(length, int):
            counts[2 + axis] = minimum(counts[2 + axis], ceil_div(length + geometry.pre[axis], stride))
    return layers.slice_of(net, result, [0] * result.rank, counts)


def _window(node: Node, x: Value) -> list[int]:
    sizes = node.integers("kernel_shape")
    if not 3 <= x.rank <= 5 or len(sizes) != x.rank - 2:
        raise node.invalid(
            f"expected a kernel_shape of {x.rank - 2} entries for an input of {x.rank} dimensions, got {sizes}"
        )
    return sizes


def _spatial(node: Node) -> list[int]:
    rank = node.input(0).rank
    if rank < 3:
        raise node.invalid(f"expected an input of at least 3 dimensions, but it has {rank}")
    return list(range(2, rank))


def _exponent(node: Node) -> int:
    p, x = node.integer("p", 2), node.input(0)
    if p < 1 or not is_float(x.element):
        raise node.invalid(f"expected a positive p and floating-point numbers, got {p} and {x.element_name}")
    return p


def _absolute_power(net: Network, x: Value, p: int) -> Value:
    absolute = layers.unary(net, "abs", x)
    if p == 1:
        return absolute
    return (
        layers.binary(net, "prod", x, x)
        if p == 2
        else layers.binary(net, "pow", absolute, layers.scalar_like(net, p, x))
    )


def _root(net: Network, x: Value, p: int) -> Value:
    if p == 1:
        return x
    return layers.unary(net, "sqrt", x) if p == 2 else layers.binary(net, "pow", x, layers.scalar_like(net, 1 / p, x))
