"""Conv, ConvTranspose and the convolutions of other domains that are these with something behind them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_types import numpy_dtype
from mlirt.frontend.importing import convolution as convolution_layers
from mlirt.frontend.importing import layers
from mlirt.frontend.importing.network import Network, Value
from mlirt.frontend.importing.windows import Geometry
from mlirt.frontend.onnx.handlers import onnx_op
from mlirt.frontend.onnx.node import Node
from mlirt.frontend.onnx.windows import geometry_of


@onnx_op("Conv")
def convolution(net: Network, node: Node) -> Value:
    return convolve(net, node, node.input(0), node.input(1), node.optional(2))


def convolve(net: Network, node: Node, x: Value, kernel: Value, bias: Value | None, padding: int | Value = 0) -> Value:
    """A convolution with the attributes of `node`; cells of padding hold `padding`."""
    sizes = _kernel_sizes(node, x, kernel)
    geometry = geometry_of(node, sizes, x.dims[2:])
    return convolution_layers.convolve(net, x, kernel, bias, geometry, node.integer("group", 1), padding)


def _kernel_sizes(node: Node, x: Value, kernel: Value) -> list[int]:
    sizes = convolution_layers.kernel_sizes(node, x, kernel)
    declared = node.integers("kernel_shape", sizes)
    if declared != sizes:
        raise node.invalid(f"kernel_shape is {declared}, but the weights are {[str(dim) for dim in kernel.dims]}")
    return sizes


@onnx_op("ConvTranspose")
def deconvolution(net: Network, node: Node) -> Value:
    x, kernel, bias = node.input(0), node.input(1), node.optional(2)
    sizes = _kernel_sizes(node, x, kernel)
    geometry = geometry_of(node, sizes, x.dims[2:], transposed=True)
    added = node.integers("output_padding", [0] * len(sizes))
    geometry, added = _for_output_shape(node, geometry, sizes, added, x.dims[2:])
    if len(added) != len(sizes) or min(added, default=0) < 0:
        raise node.invalid(f"output_padding {added} needs one length for each of {len(sizes)} axes")
    return convolution_layers.deconvolve(net, x, kernel, bias, geometry, added, node.integer("group", 1))


def _for_output_shape(
    node: Node, geometry: Geometry, sizes: Sequence[int], added: list[int], lengths: Sequence[Dim]
) -> tuple[Geometry, list[int]]:
    """Pads cut from what the strides give, so that the output has the length that the attributes ask for."""
    same = geometry.mode.startswith("same")
    if not node.has("output_shape") and not same:
        return geometry, added
    wanted = node.integers("output_shape", [])[-len(sizes) :]
    pre, post = list(geometry.pre), list(geometry.post)
    for axis, size in enumerate(sizes):
        stride, extent = geometry.strides[axis], 1 + geometry.dilations[axis] * (size - 1)
        target = wanted[axis] if wanted else lengths[axis] * stride
        total = (lengths[axis] - 1) * stride + extent + added[axis] - target
        if not isinstance(total, int):
            raise node.unsupported("output_shape needs a spatial size that is known when the engine is built")
        if total < 0:  # the output is longer than the windows reach: zeros (and bias) follow at the end
            added[axis] -= total
            total = 0
        small, large = total // 2, total - total // 2
        pre[axis], post[axis] = (small, large) if geometry.mode == "same_upper" else (large, small)
    return Geometry(geometry.strides, geometry.dilations, pre, post, "explicit_round_down"), added


@onnx_op("Col2Im", since=18)
def columns_to_image(net: Network, node: Node) -> Value:
    """Overlapping blocks added up: a deconvolution in which each row of a column has a kernel with a single 1."""
    x, image, block = node.input(0), node.known_integers(1, "image_shape"), node.known_integers(2, "block_shape")
    if x.rank != 3 or not image or not block or len(image) != len(block) or not 2 <= len(block) <= 3:
        raise node.invalid("expected an input of 3 dimensions, and image_shape and block_shape of 2 or 3 entries each")
    geometry = geometry_of(node, block, [], transposed=True)
    cells = math.prod(block)
    rows = x.dims[1]
    if not isinstance(rows, int) or not cells or rows % cells:
        raise node.invalid(f"{rows} rows do not make blocks of {cells} cells")
    frames = [
        (length + pre + post - 1 - dilation * (size - 1)) // stride + 1
        for length, size, stride, dilation, pre, post in zip(
            image, block, geometry.strides, geometry.dilations, geometry.pre, geometry.post, strict=True
        )
    ]
    ones = np.tile(np.eye(cells).reshape(cells, 1, *block), (rows // cells, *[1] * (len(block) + 1)))
    covered = [
        (count - 1) * stride + 1 + dilation * (size - 1) - pre - post
        for count, size, stride, dilation, pre, post in zip(
            frames, block, geometry.strides, geometry.dilations, geometry.pre, geometry.post, strict=True
        )
    ]
    return net.emit(
        "deconvolution",
        [layers.reshape(net, x, [x.dims[0], rows, *frames]), net.constant(ones.astype(numpy_dtype(x.element))), None],
        stride=geometry.strides,
        dilation=geometry.dilations,
        pre_padding=geometry.pre,
        post_padding=geometry.post,
        output_padding=[length - reached for length, reached in zip(image, covered, strict=True)],
        num_groups=rows // cells,
    )
