"""One call of an operator, as a handler sees it: arguments by name, and what PyTorch inferred of its results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Number
from typing import Any, cast

import numpy as np

from mlirt.dialects.symbolic import Dim, Expr
from mlirt.dialects.tensor_types import element_type, numpy_dtype
from mlirt.errors import InvalidModelError, UnsupportedError
from mlirt.frontend.importing import layers
from mlirt.frontend.importing.network import Network, Value
from mlirt.frontend.torch.symbolic_numbers import size_value


@dataclass(frozen=True)
class ResultType:
    """The element type and the dimensions of a result, as PyTorch inferred them."""

    element: str
    dims: tuple[Dim, ...]


@dataclass(frozen=True)
class Call:
    """A call while its handler runs.

    `arguments` has every argument of the operator's schema: tensors are values, sizes are dimensions, data types the
    names of element types; the others are what PyTorch passes. `name` is the module's path and the node's name.
    `unread` are the results of several that nothing reads.
    """

    net: Network
    operator: str
    name: str
    arguments: Mapping[str, Any]
    results: Sequence[ResultType]
    promoted: Callable[[Sequence[str]], str]
    unread: frozenset[int] = frozenset()

    # Arguments.

    def value(self, name: str) -> Value:
        """A tensor."""
        value = self.optional(name)
        if value is None:
            raise self.unsupported(f"it has no tensor {name!r}")
        return value

    def optional(self, name: str) -> Value | None:
        value = self.arguments.get(name)
        if value is not None and not isinstance(value, Value):
            raise self.unsupported(f"its argument {name!r} is {value!r}, expected a tensor")
        return value

    def values(self, name: str) -> list[Value]:
        return [value for value in self.arguments[name] if isinstance(value, Value)]

    def operand(self, name: str, element: str) -> Value:
        """A tensor or a number as a value of an element type."""
        given = self.arguments[name]
        if isinstance(given, Value):
            return layers.cast(self.net, given, element)
        if isinstance(given, Expr):
            return layers.cast(self.net, self.size_value(given), element)
        if not isinstance(given, Number | list):
            raise self.unsupported(
                f"its argument {name!r} is {given}, a number that only a run tells; keep it a tensor"
            )
        return self.net.constant(np.asarray(given).astype(numpy_dtype(element_type(element))))

    def size_value(self, dim: Dim) -> Value:
        """A size as a 0-D int64 value."""
        return size_value(self.net, dim)

    def given(self, name: str) -> bool:
        return self.arguments.get(name) is not None

    def flag(self, name: str) -> bool:
        return bool(self.arguments[name])

    def integer(self, name: str) -> int:
        value = self.arguments[name]
        if not isinstance(value, int):
            raise self.unsupported(f"its argument {name!r} is {value}, expected a number that is known when building")
        return int(value)

    def integers(self, name: str) -> list[int]:
        value = self.arguments[name]
        listed = [] if value is None else cast("list[Any]", value) if isinstance(value, list) else [value]
        if not all(isinstance(one, int) for one in listed):
            raise self.unsupported(f"its argument {name!r} is {listed}, expected numbers that are known when building")
        return [int(one) for one in listed]

    def real(self, name: str) -> float:
        value = self.arguments[name]
        if not isinstance(value, int | float):
            raise self.unsupported(f"its argument {name!r} is {value}, expected a number that is known when building")
        return float(value)

    def dims(self, name: str) -> list[Dim]:
        listed: list[Dim] = list(self.arguments[name])
        return listed

    def text(self, name: str) -> str:
        return str(self.arguments[name])

    def axis(self, name: str, rank: int) -> int:
        return self.from_front(self.integer(name), rank)

    def axes(self, name: str, rank: int) -> list[int]:
        """Axes from the front; all where there are none."""
        given = self.integers(name)
        return sorted(self.from_front(axis, rank) for axis in given) if given else list(range(rank))

    def from_front(self, axis: int, rank: int) -> int:
        if not -max(rank, 1) <= axis < max(rank, 1):
            raise self.invalid(f"axis {axis} does not exist; its input has {rank} dimensions")
        return axis % max(rank, 1)

    # Results.

    @property
    def element(self) -> str:
        """The element type of the first result."""
        return self.results[0].element

    @property
    def result_dims(self) -> tuple[Dim, ...]:
        """The dimensions of the first result."""
        return self.results[0].dims

    # Messages.

    @property
    def label(self) -> str:
        return f"{self.operator} (node {self.name!r})"

    def invalid(self, message: str) -> InvalidModelError:
        return InvalidModelError(f"{self.label}: {message}")

    def unsupported(self, why: str) -> UnsupportedError:
        return UnsupportedError(f"{self.label} is not supported yet; {why}")
