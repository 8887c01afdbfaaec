"""What takes the results of poolings back to their places."""

from __future__ import annotations

from mlirt.dialects.symbolic import Dim, product
from mlirt.frontend.importing import layers
from mlirt.frontend.importing.network import Network, Value
from mlirt.frontend.onnx.handlers import onnx_op
from mlirt.frontend.onnx.node import Node
from mlirt.frontend.onnx.windows import geometry_of


@onnx_op("MaxUnpool", since=9)
def max_unpool(net: Network, node: Node) -> Value:
    """Zeros, with each element at the place that its index names."""
    x, indices, shape = node.input(0), node.input(1), node.known_integers(2, "the output's shape")
    sizes = node.integers("kernel_shape")
    if x.rank != len(sizes) + 2:
        raise node.invalid(f"expected a kernel_shape of {x.rank - 2} entries, got {sizes}")
    geometry = geometry_of(node, sizes, x.dims[2:])
    lengths: list[Dim] = [
        (length - 1) * geometry.strides[axis] + size - geometry.pre[axis] - geometry.post[axis]
        for axis, (length, size) in enumerate(zip(x.dims[2:], sizes, strict=True))
    ]
    small = [*x.dims[:2], *lengths]
    zeros = layers.expand(net, layers.scalar_like(net, 0, x, rank=1), [product(small)])
    flat = [layers.reshape(net, value, [product(x.dims)]) for value in (indices, x)]
    written = net.emit("scatter", [zeros, *flat], mode="element", axis=0, reduction="none")
    result = layers.reshape(net, written, small)
    if shape is None:
        return result
    if len(shape) != x.rank:
        raise node.invalid(f"expected {x.rank} lengths of the output, got {shape}")
    post = [wanted - have for wanted, have in zip(shape, small, strict=True)]
    return layers.pad(net, result, [0] * x.rank, post, "constant", None)
