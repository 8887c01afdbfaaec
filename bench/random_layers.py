"""What random networks are written with: tensors with their sizes, random weights, random choices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from graph_writer import GraphWriter

Array = np.ndarray[Any, np.dtype[Any]]
_T = TypeVar("_T")


@dataclass(frozen=True)
class Value:
    """A tensor of a network under construction, with its sizes in the run that the inputs are for."""

    name: str
    shape: tuple[int, ...]


@dataclass
class Writer:
    """A graph under construction and the generator that decides about it."""

    graph: GraphWriter
    random: np.random.Generator
    inputs: dict[str, Array] = field(default_factory=dict[str, Array])
    also_returned: list[Value] = field(default_factory=list[Value])
    _weights: int = 0

    def node(self, kind: str, inputs: Sequence[Value | str], shape: Sequence[int], **attributes: Any) -> Value:
        """Append a node; `shape` is what its output has."""
        names = [one.name if isinstance(one, Value) else one for one in inputs]
        return Value(self.graph.node(kind, names, **attributes), tuple(shape))

    def normal(self, shape: Sequence[int], deviation: float, mean: float = 0.0) -> str:
        """A weight with a normal distribution, in half precision."""
        numbers = self.random.standard_normal(tuple(shape)) * deviation + mean
        return self.constant(numbers.astype(np.float16).astype(np.float32))

    def constant(self, array: Array) -> str:
        """A weight or a list of numbers."""
        self._weights += 1
        return self.graph.constant(f"weight{self._weights}", array)

    def integers(self, *numbers: int) -> str:
        """A list of int64."""
        return self.constant(np.array(numbers, np.int64))

    def input(self, name: str, array: Array) -> Value:
        """An input of the network; floats are rounded to half precision."""
        rounded = array.astype(np.float16).astype(np.float32) if array.dtype.kind == "f" else array
        self.inputs[name] = rounded
        return Value(name, tuple(array.shape))

    def one_of(self, choices: Sequence[_T]) -> _T:
        return choices[int(self.random.integers(len(choices)))]

    def between(self, low: int, high: int) -> int:
        """An integer, both ends included."""
        return int(self.random.integers(low, high + 1))

    def chance(self, part: float) -> bool:
        return bool(self.random.random() < part)

    def batch(self) -> int:
        return self.between(1, 9)

    def channels(self) -> int:
        """Often a multiple of 8, as networks have it; else any number."""
        return 8 * self.between(1, 24) if self.chance(0.6) else self.between(3, 190)

    def activation(self, x: Value) -> Value:
        """A random function of one number, or none."""
        kind = self.one_of(["Relu", "Relu", "Sigmoid", "Tanh", "silu", "gelu", "HardSwish", "LeakyRelu", ""])
        if kind == "silu":
            return self.node("Mul", [x, self.node("Sigmoid", [x], x.shape)], x.shape)
        if kind == "gelu":
            return self.gelu(x)
        return self.node(kind, [x], x.shape) if kind else x

    def gelu(self, x: Value) -> Value:
        scaled = self.node("Div", [x, self.constant(np.array(2**0.5, np.float32))], x.shape)
        erf = self.node("Add", [self.node("Erf", [scaled], x.shape), self.constant(np.array(1, np.float32))], x.shape)
        product = self.node("Mul", [x, erf], x.shape)
        return self.node("Mul", [product, self.constant(np.array(0.5, np.float32))], x.shape)
