"""DeformConv."""

from __future__ import annotations

from mlirt.frontend.importing import layers
from mlirt.frontend.importing.deformed_convolution import Deformed, convolve_deformed
from mlirt.frontend.importing.network import Network, Value
from mlirt.frontend.onnx.handlers import onnx_op
from mlirt.frontend.onnx.node import Node

_SINGLE = ("float32", "float64")


@onnx_op("DeformConv", since=19)
def deformed_convolution(net: Network, node: Node) -> Value:
    """Images alone; half precision is computed in single precision, in which places in the image are exact enough."""
    x, kernel, offset = (node.input(k) for k in range(3))
    bias, mask = node.optional(3), node.optional(4)
    if x.rank != 4 or kernel.rank != 4 or offset.rank != 4:
        raise node.unsupported(f"only images are deformed, got {x.type}")
    if not all(isinstance(dim, int) for dim in (x.dims[1], *kernel.dims)):
        raise node.unsupported("the channels and the kernel must have lengths that are known when building")
    element = x.element
    if x.element_name not in _SINGLE:
        x, kernel, offset = (layers.cast(net, one, "float32") for one in (x, kernel, offset))
        bias, mask = (None if one is None else layers.cast(net, one, "float32") for one in (bias, mask))
    window = Deformed(
        strides=node.integers("strides", [1, 1]),
        pads=node.integers("pads", [0, 0, 0, 0])[:2],
        dilations=node.integers("dilations", [1, 1]),
        groups=node.integer("group", 1),
        offset_groups=node.integer("offset_group", 1),
    )
    return layers.cast(net, convolve_deformed(net, x, kernel, offset, mask, bias, window), element)
