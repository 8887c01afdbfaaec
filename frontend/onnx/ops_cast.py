"""Changes of element type."""

from __future__ import annotations

from onnx import TensorProto
from xdsl.ir import Attribute

from mlirt.dialects.tensor_types import element_type
from mlirt.frontend.importing import layers
from mlirt.frontend.importing.network import Network, Value
from mlirt.frontend.onnx.handlers import onnx_op
from mlirt.frontend.onnx.narrow_types import NARROW_TYPES
from mlirt.frontend.onnx.narrow_values import narrowed, widened
from mlirt.frontend.onnx.node import Node
from mlirt.frontend.onnx.tensor_reader import dtype, element_name


@onnx_op("Cast")
def cast(net: Network, node: Node) -> Value:
    if node.opset < 6:
        return layers.cast(net, node.input(0), _named_type(node, node.text("to")))
    target = node.integer("to")
    kind = NARROW_TYPES.get(target)
    if kind is not None:
        return narrowed(net, node.input(0), kind, bool(node.integer("saturate", 1)))
    return _cast(net, node.input(0), element_type(element_name(target, node.label)))


def _cast(net: Network, x: Value, element: Attribute) -> Value:
    return layers.cast(net, x, element) if x.narrow is None else widened(net, x, element)


def _named_type(node: Node, name: str) -> str:
    """The element type of a name as the first opsets have it."""
    if name not in TensorProto.DataType.keys():
        raise node.invalid(f"expected the name of an element type, got {name!r}")
    return element_name(TensorProto.DataType.Value(name), node.label)


@onnx_op("CastLike", since=15)
def cast_like(net: Network, node: Node) -> Value:
    like = node.input(1)
    if like.narrow is not None:
        return narrowed(net, node.input(0), like.narrow, bool(node.integer("saturate", 1)))
    return _cast(net, node.input(0), like.element)


@onnx_op("BitCast")
def bit_cast(net: Network, node: Node) -> Value:
    """The same bits under another type of the same width; only where the elements are known."""
    x, target = node.input(0), dtype(element_name(node.integer("to"), node.label))
    if x.array is None:
        raise node.needed(0, "its operand")
    if x.array.dtype.itemsize != target.itemsize:
        raise node.invalid(f"{x.element_name} and {target.name} have different widths")
    return net.constant(x.array.view(target))
