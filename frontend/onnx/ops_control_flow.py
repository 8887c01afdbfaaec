"""Branches whose condition is known when the engine is built; the others need `trt`'s boundary layers."""

from __future__ import annotations

from collections.abc import Sequence

from mlirt.frontend.onnx.handlers import onnx_op
from mlirt.frontend.onnx.network import Network, Value
from mlirt.frontend.onnx.node import Node, scalar


@onnx_op("If")
def if_(net: Network, node: Node) -> Sequence[Value]:
    from mlirt.frontend.onnx.graph_reader import GraphReader

    condition = node.input(0).array
    if condition is None or condition.size != 1:
        raise node.unsupported("its condition is known only at run time; make it a constant of the model")
    return GraphReader(net).read_branch(node.graph("then_branch" if scalar(condition) else "else_branch"), node)
