"""Writes ONNX graphs node by node, with seeded random weights under the names that PyTorch's modules give them."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

Array = np.ndarray[Any, np.dtype[Any]]
OPSET = 17


class GraphWriter:
    """Collects nodes and weights; every method returns the name of a tensor."""

    def __init__(self, seed: int) -> None:
        self._random = np.random.default_rng(seed)
        self._nodes: list[onnx.NodeProto] = []
        self._count = 0
        self._weights: dict[str, onnx.TensorProto] = {}

    def node(self, kind: str, inputs: Sequence[str], name: str = "", **attributes: Any) -> str:
        """Append a node with one output."""
        output = name or f"{kind.lower()}_{self._count}"
        self._add(helper.make_node(kind, list(inputs), [output], output, **attributes))
        return output

    def append(self, kind: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: Any) -> None:
        """Append a node with any number of outputs."""
        name = f"{kind.lower()}_{self._count}"
        self._add(helper.make_node(kind, list(inputs), list(outputs), name, **attributes))

    def _add(self, node: onnx.NodeProto) -> None:
        self._nodes.append(node)
        self._count += 1

    @contextmanager
    def body(self) -> Generator[list[onnx.NodeProto]]:
        """What is written meanwhile becomes the nodes of a body, which are given; weights stay the graph's."""
        outer, self._nodes = self._nodes, list[onnx.NodeProto]()
        try:
            yield self._nodes
        finally:
            self._nodes = outer

    def scalar(self, name: str, value: float) -> str:
        """A float32 number."""
        return self.constant(name, np.array(value, np.float32))

    def constant(self, name: str, array: Array) -> str:
        """A weight; a second one of the same name is the same."""
        if name not in self._weights:
            self._weights[name] = numpy_helper.from_array(array, name)
        return name

    def normal(self, name: str, shape: Sequence[int], deviation: float, mean: float = 0.0) -> str:
        """A weight with a normal distribution."""
        numbers = self._random.standard_normal(tuple(shape), np.float32)
        return self.constant(name, numbers * np.float32(deviation) + np.float32(mean))

    def uniform(self, name: str, shape: Sequence[int], low: float, high: float) -> str:
        """A weight with a uniform distribution."""
        return self.constant(name, self._random.uniform(low, high, tuple(shape)).astype(np.float32))

    def model(
        self,
        name: str,
        inputs: Sequence[onnx.ValueInfoProto],
        outputs: Sequence[onnx.ValueInfoProto],
        opset: int = OPSET,
    ) -> onnx.ModelProto:
        """The whole model."""
        graph = helper.make_graph(self._nodes, name, list(inputs), list(outputs), list(self._weights.values()))
        return helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9 if opset < 21 else 10
        )


def floats(name: str, *shape: int | str) -> onnx.ValueInfoProto:
    """A public float32 tensor; a dimension that is a text is open."""
    return helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape)


def integers(name: str, *shape: int | str) -> onnx.ValueInfoProto:
    """A public int64 tensor."""
    return helper.make_tensor_value_info(name, onnx.TensorProto.INT64, shape)
