"""An ONNX node as rules see it, and which of its inputs are numbers of the host."""

# PyTorch is not among the packages that are checked here: what comes from it has no type.
# pyright: reportMissingImports=false, reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false
# pyright: reportUnknownParameterType=false, reportOptionalMemberAccess=false, reportArgumentType=false

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import onnx
from onnx import numpy_helper

Tensor: TypeAlias = Any
Array = np.ndarray[Any, np.dtype[Any]]


class Unsupported(Exception):
    """The graph has an operator, or a use of one, that is not here."""


@dataclass(frozen=True)
class Node:
    """An ONNX node with its attributes as Python values."""

    kind: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: dict[str, Any]
    opset: int
    dtype: Any
    """What the network's floating-point numbers are in PyTorch."""

    @staticmethod
    def of(proto: onnx.NodeProto, opset: int, dtype: Any) -> Node:
        attributes = {one.name: onnx.helper.get_attribute_value(one) for one in proto.attribute}
        return Node(proto.op_type, tuple(proto.input), tuple(proto.output), attributes, opset, dtype)

    def get(self, name: str, default: Any = None) -> Any:
        value = self.attributes.get(name, default)
        return value.decode() if isinstance(value, bytes) else value

    def constant(self) -> Array:
        """The array of a Constant node."""
        ((name, value),) = self.attributes.items()
        if name == "value":
            return numpy_helper.to_array(value)
        return np.array(value, np.float32 if "float" in name else np.int64)

    def shape_of(self, x: Any) -> Array:
        """The result of a Shape node."""
        return np.array(x.shape[self.get("start", 0) : self.get("end")], np.int64)


Rule: TypeAlias = Callable[[Node, list[Any]], Any]


# Positions of the inputs that say sizes or are numbers of the call.
HOST_INPUTS: dict[str, tuple[int, ...]] = {
    "Reshape": (1,),
    "Squeeze": (1,),
    "Unsqueeze": (1,),
    "Slice": (1, 2, 3, 4),
    "Expand": (1,),
    "Tile": (1,),
    "Split": (1,),
    "Resize": (1, 2, 3),
    "Upsample": (1,),
    "Pad": (1, 2, 3),
    "Clip": (1, 2),
    "Range": (0, 1, 2),
    "ConstantOfShape": (0,),
    "ReduceSum": (1,),
    "ReduceMean": (1,),
    "ReduceMax": (1,),
    "ReduceMin": (1,),
    "ReduceProd": (1,),
    "Pow": (1,),
    "Dropout": (1, 2),
    "GRU": (1, 2, 3, 4),
    "LSTM": (1, 2, 3, 4),
}


def number_of(value: Any) -> float:
    """A number, or the only one of a list."""
    while isinstance(value, list):
        if len(value) != 1:
            raise Unsupported("an array where a number is expected")
        value = value[0]
    return float(value)


def as_matrix(x: Tensor, axis: int) -> Tensor:
    """The dimensions before `axis` as one, and those from it on as another."""
    axis = axis % x.dim() if axis < x.dim() else axis
    return x.reshape(int(np.prod(x.shape[:axis], dtype=np.int64)), -1)


def axes_of(node: Node, given: list[Any]) -> list[int] | None:
    if len(given) > 1 and given[1] is not None:
        return given[1]
    axes = node.get("axes")
    return None if axes is None else list(axes)


def of_one(function: Callable[[Tensor], Tensor]) -> Rule:
    return lambda node, given: function(given[0])


def of_two(function: Callable[[Tensor, Tensor], Tensor]) -> Rule:
    return lambda node, given: function(given[0], given[1])
