"""Poolings as layers: windows that slide, with partial windows at the end where those count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mlirt.dialects.symbolic import Dim, ceil_div, minimum
from mlirt.dialects.symbolic_bounds import at_most
from mlirt.dialects.window_arithmetic import PaddingMode, ShortInput, Window
from mlirt.frontend.importing import layers
from mlirt.frontend.importing.network import Network, Value
from mlirt.frontend.importing.windows import Geometry


def pool(
    net: Network,
    x: Value,
    kind: str,
    sizes: list[int],
    geometry: Geometry,
    *,
    ceil_mode: bool,
    excludes_padding: bool = True,
    counts_overhang: bool = False,
) -> Value:
    """A pooling of N x C x spatial axes; with `ceil_mode` a partial window at the end counts."""
    lengths = x.dims[2:]
    geometry = ceiled(geometry, sizes, lengths) if ceil_mode else geometry
    result = _pooled(net, x, kind, sizes, geometry, excludes_padding, counts_overhang)
    return _without_windows_behind(net, result, geometry, sizes, lengths)


def mean_of_whole_windows(net: Network, x: Value, sizes: list[int], geometry: Geometry, *, ceil_mode: bool) -> Value:
    """The mean over the full window even where it overhangs: zeros behind the input make its cells."""
    lengths = x.dims[2:]
    geometry = ceiled(geometry, sizes, lengths) if ceil_mode else geometry
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


def ceiled(geometry: Geometry, sizes: Sequence[int], lengths: Sequence[Dim]) -> Geometry:
    """The geometry with which a partial window at the end counts, unless it starts behind the input.

    The round-up mode of TensorRT keeps such a window; where lengths are numbers, pads that end with the last window
    that counts ask for the smaller output. Others are cut off by `_without_windows_behind`.
    """
    if geometry.mode != "explicit_round_down":
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
