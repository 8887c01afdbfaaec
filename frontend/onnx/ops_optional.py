"""Values that may be missing: whether one is there is known when the network is read."""

from __future__ import annotations

import numpy as np

from mlirt.frontend.onnx.handlers import onnx_op
from mlirt.frontend.onnx.network import Network, Value
from mlirt.frontend.onnx.node import Node


@onnx_op("OptionalHasElement", since=15)
def has_element(net: Network, node: Node) -> Value:
    """A tensor is always there; an input that is left out is not."""
    return net.constant(np.array(node.optional(0) is not None))


@onnx_op("OptionalGetElement", since=15)
def get_element(net: Network, node: Node) -> Value:
    return node.input(0)
