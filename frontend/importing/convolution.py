"""Convolutions and transposed convolutions as layers; one spatial axis becomes two."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mlirt.dialects.tensor_types import numpy_dtype
from mlirt.frontend.importing import layers
from mlirt.frontend.importing.network import Network, Value
from mlirt.frontend.importing.source_node import SourceNode
from mlirt.frontend.importing.windows import Geometry, pads_of


def convolve(
    net: Network,
    x: Value,
    kernel: Value,
    bias: Value | None,
    geometry: Geometry,
    groups: int,
    padding: int | Value = 0,
) -> Value:
    """A convolution of N x C x spatial axes.

    Cells of padding hold `padding`. A number of them, or what they hold, that only the run knows is a layer before.
    """
    sizes = [size for size in kernel.dims[2:] if isinstance(size, int)]
    if isinstance(padding, Value) or geometry.mode.startswith("same"):
        pre, post = pads_of(geometry, sizes, x.dims[2:])
        x = layers.pad(net, x, [0, 0, *pre], [0, 0, *post], "constant", _filling(net, x, padding))
        geometry = Geometry(geometry.strides, geometry.dilations, [0] * len(sizes), [0] * len(sizes))
        padding = 0
    if len(sizes) == 1:
        wide = convolve_wide(net, image(net, x), image(net, kernel), bias, geometry.widened(), groups, padding)
        return layers.squeeze(net, wide, [2])
    return convolve_wide(net, x, kernel, bias, geometry, groups, padding)


def _filling(net: Network, x: Value, padding: int | Value) -> Value | None:
    if isinstance(padding, Value) or not padding:
        return padding or None
    return net.constant(np.array(padding, numpy_dtype(x.element)))


def convolve_wide(
    net: Network, x: Value, kernel: Value, bias: Value | None, geometry: Geometry, groups: int, padding_value: int = 0
) -> Value:
    return net.emit(
        "convolution",
        [x, kernel, bias],
        stride=geometry.strides,
        dilation=geometry.dilations,
        pre_padding=geometry.pre,
        post_padding=geometry.post,
        padding_mode=geometry.mode,
        num_groups=groups,
        padding_value=padding_value,
    )


def deconvolve(
    net: Network, x: Value, kernel: Value, bias: Value | None, geometry: Geometry, added: Sequence[int], groups: int
) -> Value:
    """A transposed convolution; `added` are cells behind the end of each axis."""
    one = kernel.rank == 3
    if one:
        x, kernel, geometry, added = image(net, x), image(net, kernel), geometry.widened(), [0, *added]
    result = net.emit(
        "deconvolution",
        [x, kernel, bias],
        stride=geometry.strides,
        dilation=geometry.dilations,
        pre_padding=geometry.pre,
        post_padding=geometry.post,
        output_padding=list(added),
        num_groups=groups,
    )
    return layers.squeeze(net, result, [2]) if one else result


def kernel_sizes(node: SourceNode, x: Value, kernel: Value) -> list[int]:
    """The lengths of a kernel; raises where its rank or that of `x` is none of a convolution."""
    sizes = [size for size in kernel.dims[2:] if isinstance(size, int)]
    if kernel.rank != x.rank or not 3 <= x.rank <= 5:
        raise node.invalid(
            f"expected input and weights of one rank from 3 to 5, but they have {x.rank} and {kernel.rank}"
        )
    if len(sizes) != kernel.rank - 2:
        raise node.unsupported("the shape of its weights must be known when the engine is built")
    return sizes


def image(net: Network, x: Value) -> Value:
    """N x C x W as N x C x 1 x W."""
    return layers.unsqueeze(net, x, [2])
