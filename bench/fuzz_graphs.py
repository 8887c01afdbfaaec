"""Random ONNX graphs grow here node by node: values with types and symbolic lengths, and the nodes between them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"
Dim: TypeAlias = "int | str"
"""A length: a number, or the name of one that only a run knows."""
Dims: TypeAlias = "tuple[Dim, ...]"

OPSET = 20
TYPES = {
    "f32": TensorProto.FLOAT,
    "i32": TensorProto.INT32,
    "i64": TensorProto.INT64,
    "u8": TensorProto.UINT8,
    "i8": TensorProto.INT8,
    "bool": TensorProto.BOOL,
}
_NUMPY = {"f32": np.float32, "i32": np.int32, "i64": np.int64, "u8": np.uint8, "i8": np.int8, "bool": np.bool_}


class DoesNotFit(Exception):
    """The graph has no values of the kinds that an operator needs."""


@dataclass(frozen=True)
class Value:
    """A tensor of the graph.

    The numbers of an `exact` one are the same whatever the order of sums is: only such values may be rounded, compared
    or sorted, where a difference in the last bit would become a large one.
    """

    name: str
    type: str
    dims: Dims
    exact: bool

    @property
    def rank(self) -> int:
        return len(self.dims)


@dataclass
class Graph:
    """A graph under construction; what `random` draws decides everything."""

    random: np.random.Generator
    lengths: Sequence[int]
    """The lengths that static dimensions are drawn from."""
    symbols: Sequence[str] = ()
    """The lengths that only a run knows."""
    nodes: list[onnx.NodeProto] = field(default_factory=list[onnx.NodeProto])
    inputs: list[Value] = field(default_factory=list[Value])
    values: list[Value] = field(default_factory=list[Value])
    weights: list[onnx.TensorProto] = field(default_factory=list[onnx.TensorProto])
    used: set[str] = field(default_factory=set[str])
    _names: int = 0

    def name(self, stem: str) -> str:
        self._names += 1
        return f"{stem}_{self._names}"

    def new_dim(self) -> str:
        """A length that follows from others in a way that is not kept."""
        return self.name("?")

    def integer(self, low: int, high: int) -> int:
        """A number from `low` to `high`, both included."""
        return int(self.random.integers(low, high + 1))

    def one_of(self, choices: Sequence[Any]) -> Any:
        return choices[self.integer(0, len(choices) - 1)]

    def chance(self, share: float) -> bool:
        return bool(self.random.random() < share)

    def length(self) -> Dim:
        """A symbol in two of five draws, else a number."""
        if self.symbols and self.chance(0.4):
            return str(self.one_of(self.symbols))
        return int(self.one_of(self.lengths))

    def add_input(self, type: str, dims: Dims) -> Value:
        value = Value(self.name("x"), type, dims, exact=True)
        self.inputs.append(value)
        self.values.append(value)
        return value

    def weight(self, array: Array) -> str:
        name = self.name("w")
        self.weights.append(numpy_helper.from_array(array, name))
        return name

    def scalar(self, type: str, number: float) -> str:
        return self.weight(np.array(number, _NUMPY[type]))

    def ints(self, *numbers: int) -> str:
        """A weight of one dimension, such as axes or a shape."""
        return self.weight(np.array(numbers, np.int64))

    def eighths(self, *shape: int) -> str:
        """A weight of float32 numbers that are multiples of 1/8, so that few of them add up exactly."""
        return self.weight((self.random.integers(-16, 17, shape) / 8).astype(np.float32))

    def small(self, type: str, *shape: int) -> str:
        """A weight of small numbers of any type."""
        return self.weight(numbers(self.random, type, shape))

    def node(self, kind: str, inputs: Sequence[str], outputs: int = 1, **attributes: Any) -> list[str]:
        names = [self.name(kind.lower()) for _ in range(outputs)]
        domain = attributes.pop("domain", "")
        self.nodes.append(helper.make_node(kind, list(inputs), names, names[0], domain=domain, **attributes))
        self.used.update(inputs)
        return names

    def put(self, name: str, type: str, dims: Dims, *, exact: bool) -> Value:
        """Say what a node's output is, so that others can read it."""
        value = Value(name, type, dims, exact)
        self.values.append(value)
        return value

    def emit(self, kind: str, inputs: Sequence[str], type: str, dims: Dims, *, exact: bool, **attributes: Any) -> Value:
        """A node with one output."""
        return self.put(self.node(kind, inputs, **attributes)[0], type, dims, exact=exact)

    def pick(self, types: str | Sequence[str], fits: Callable[[Value], bool] = lambda _: True) -> Value:
        """Any value of these types that fits, late ones more often than early ones."""
        wanted = (types,) if isinstance(types, str) else types
        found = [value for value in self.values if value.type in wanted and fits(value)]
        if not found:
            raise DoesNotFit(f"no {wanted}")
        return found[max(self.integer(0, len(found) - 1), self.integer(0, len(found) - 1))]

    def exact(self, types: str | Sequence[str] = "f32", fits: Callable[[Value], bool] = lambda _: True) -> Value:
        return self.pick(types, lambda value: value.exact and fits(value))

    def like(self, value: Value) -> Value:
        """Another value of the same type that broadcasts with this one by its right-hand dimensions, or itself."""

        def fits(other: Value) -> bool:
            pairs = zip(reversed(value.dims), reversed(other.dims), strict=False)
            return other.rank <= value.rank and all(mine == theirs or theirs == 1 for mine, theirs in pairs)

        return self.pick(value.type, fits)

    def model(self) -> onnx.ModelProto:
        """The model whose outputs are all values that no node reads; at most five of them, the late ones."""
        left = [value for value in self.values if value.name not in self.used and value not in self.inputs][-5:]
        outputs = [_info(value.name, value.type, None) for value in left]
        inputs = [_info(value.name, value.type, value.dims) for value in self.inputs]
        graph = helper.make_graph(self.nodes, "random", inputs, outputs, self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=9)

    def feeds(self, lengths: dict[str, int]) -> dict[str, Array]:
        """Inputs whose symbolic dimensions have these lengths."""
        return {
            value.name: numbers(
                self.random, value.type, tuple(lengths[dim] if isinstance(dim, str) else dim for dim in value.dims)
            )
            for value in self.inputs
        }


def numbers(random: np.random.Generator, type: str, shape: Sequence[int]) -> Array:
    """Multiples of 1/8 for floats, small whole numbers else."""
    if type == "f32":
        return (random.integers(-24, 25, shape) / 8).astype(np.float32)
    if type == "bool":
        return random.integers(0, 2, shape).astype(np.bool_)
    return random.integers(0 if type == "u8" else -9, 10, shape).astype(_NUMPY[type])


def _info(name: str, type: str, dims: Dims | None) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TYPES[type], dims)
