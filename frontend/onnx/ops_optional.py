"""Values that may be missing: whether one is there is known when the network is read."""

from __future__ import annotations

import numpy as np

from mlirt.frontend.importing.network import Network, Value
from mlirt.frontend.onnx.handlers import onnx_op
from mlirt.frontend.onnx.node import Node
from mlirt.frontend.onnx.sequences import MissingValue


@onnx_op("Optional", since=15)
def optional(net: Network, node: Node) -> Value:
    """An optional is the value itself, or one without value."""
    return node.optional(0) or MissingValue()


@onnx_op("OptionalHasElement", since=15)
def has_element(net: Network, node: Node) -> Value:
    """A tensor or a sequence is always there; an input that is left out is not."""
    value = node.optional(0)
    return net.constant(np.array(value is not None and not isinstance(value, MissingValue)))


@onnx_op("OptionalGetElement", since=15)
def get_element(net: Network, node: Node) -> Value:
    value = node.input(0)
    if isinstance(value, MissingValue):
        raise node.invalid("its optional has no value")
    return value
