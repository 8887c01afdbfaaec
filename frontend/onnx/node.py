"""One node of a graph, as a handler sees it: inputs as values, attributes of the right type, errors with its name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import AttributeProto, GraphProto

from mlirt.dialects.symbolic import Dim, Expr
from mlirt.dialects.tensor_types import numpy_dtype
from mlirt.errors import InvalidModelError, UnsupportedError
from mlirt.frontend.importing.network import Network, Value
from mlirt.frontend.importing.number_arrays import Array
from mlirt.frontend.onnx.refusals import not_supported
from mlirt.frontend.onnx.tensor_reader import read_tensor

if TYPE_CHECKING:
    from mlirt.frontend.onnx.graph_reader import Scope

_FIELDS: dict[int, str] = {
    AttributeProto.INT: "i",
    AttributeProto.INTS: "ints",
    AttributeProto.FLOAT: "f",
    AttributeProto.FLOATS: "floats",
    AttributeProto.STRING: "s",
    AttributeProto.STRINGS: "strings",
    AttributeProto.TENSOR: "t",
    AttributeProto.GRAPH: "g",
}


class Node:
    """A node while its handler runs. Missing or mistyped parts raise `InvalidModelError` that names the node."""

    def __init__(
        self,
        net: Network,
        op_type: str,
        name: str,
        opset: int,
        domain: str,
        inputs: Sequence[Value | None],
        outputs: Sequence[str],
        attributes: Mapping[str, AttributeProto],
        scope: Scope,
        folder: Path | None = None,
    ) -> None:
        self.net = net
        self.op_type = op_type
        self.name = name
        self.opset = opset
        self.domain = domain
        self.inputs = inputs
        self.outputs = outputs
        self.attributes = attributes
        self.scope = scope
        self.folder = folder

    # Inputs.

    def input(self, k: int) -> Value:
        """Input `k`, which the op cannot do without."""
        value = self.optional(k)
        if value is None:
            raise self.invalid(
                f"expected input {k}, but there are {len(self.inputs)} inputs"
                + (" and it is empty" if k < len(self.inputs) else "")
            )
        return value

    def optional(self, k: int) -> Value | None:
        return self.inputs[k] if k < len(self.inputs) else None

    def present(self) -> list[Value]:
        """All inputs of a variadic op."""
        return [self.input(k) for k in range(len(self.inputs))]

    def wants(self, k: int) -> bool:
        """Whether output `k` is used."""
        return k < len(self.outputs) and bool(self.outputs[k])

    def known(self, k: int, what: str) -> Array | None:
        """The elements of optional input `k`, which must not depend on the run."""
        value = self.optional(k)
        if value is None:
            return None
        array = value.array
        if array is None and 0 in value.dims:
            return np.zeros([dim if isinstance(dim, int) else 0 for dim in value.dims], numpy_dtype(value.element))
        if array is None:
            raise self.net.needed(value, f"{self.label}: {what}")
        return array

    def known_integers(self, k: int, what: str) -> list[int] | None:
        """The elements of optional input `k` as a flat list."""
        array = self.known(k, what)
        return None if array is None else [int(element) for element in array.reshape(-1)]

    def known_dims(self, k: int) -> list[Dim | None] | None:
        """The elements of input `k` as dimensions; `None` for an element, or for all, that only the run can tell."""
        value = self.optional(k)
        numbers = None if value is None else value.dim_values
        if numbers is None:
            return None
        return [element if isinstance(element, int | Expr) else None for element in numbers.reshape(-1)]

    def needed(self, k: int, what: str) -> Exception:
        """The refusal where input `k` must be known and is not."""
        return self.net.needed(self.input(k), f"{self.label}: {what}")

    # Attributes.

    def integer(self, name: str, default: int | None = None) -> int:
        return self._attribute(name, AttributeProto.INT, default)

    def flag(self, name: str, default: bool) -> bool:
        """An attribute that is 0 or 1; raises `InvalidModelError` for another number."""
        value = self.integer(name, int(default))
        if value not in (0, 1):
            raise InvalidModelError(f"{self.label}: the attribute {name} is {value}, expected 0 or 1")
        return value == 1

    def integers(self, name: str, default: Sequence[int] | None = None) -> list[int]:
        return list(self._attribute(name, AttributeProto.INTS, default))

    def real(self, name: str, default: float | None = None) -> float:
        return float(self._attribute(name, AttributeProto.FLOAT, default))

    def reals(self, name: str, default: Sequence[float] | None = None) -> list[float]:
        return [float(value) for value in self._attribute(name, AttributeProto.FLOATS, default)]

    def text(self, name: str, default: str | None = None) -> str:
        value = self._attribute(name, AttributeProto.STRING, default)
        return value.decode("utf-8", "replace") if isinstance(value, bytes) else value

    def tensor(self, name: str) -> Array:
        return read_tensor(
            self._attribute(name, AttributeProto.TENSOR, None), f"{self.label}: attribute {name!r}", self.folder
        )

    def graph(self, name: str) -> GraphProto:
        return self._attribute(name, AttributeProto.GRAPH, None)

    def has(self, name: str) -> bool:
        return name in self.attributes

    def axis(self, name: str, default: int, rank: int) -> int:
        """An axis attribute, counted from the front."""
        return self.from_front(self.integer(name, default), rank)

    def from_front(self, axis: int, rank: int) -> int:
        """An axis counted from the front; raises where there is no such axis."""
        if not -rank <= axis < max(rank, 1):
            raise self.invalid(f"axis {axis} does not exist; its input has {rank} dimensions")
        return axis % max(rank, 1)

    def plain_attributes(self) -> dict[str, Any]:
        """Numbers, lists and tensors as Python values, for shape arithmetic."""
        result: dict[str, Any] = {}
        for name, attribute in self.attributes.items():
            if attribute.type in (AttributeProto.INT, AttributeProto.FLOAT):
                result[name] = getattr(attribute, _FIELDS[attribute.type])
            elif attribute.type == AttributeProto.INTS:
                result[name] = list(attribute.ints)
            elif attribute.type == AttributeProto.TENSOR:
                result[name] = self.tensor(name)
        return result

    def _attribute(self, name: str, kind: int, default: object) -> Any:
        attribute = self.attributes.get(name)
        if attribute is None:
            if default is None:
                raise self.invalid(f"expected the attribute {name!r}, but it is missing")
            return default
        if attribute.type != kind:
            names: dict[int, str] = {value: text.lower() for text, value in AttributeProto.AttributeType.items()}
            raise self.invalid(
                f"expected attribute {name!r} as {names[kind]}, but it is {names.get(attribute.type, attribute.type)}"
            )
        return getattr(attribute, _FIELDS[kind])

    # Messages.

    @property
    def label(self) -> str:
        return f"{self.op_type} (node {self.name!r})"

    def invalid(self, message: str) -> InvalidModelError:
        return InvalidModelError(f"{self.label}: {message}")

    def unsupported(self, why: str) -> UnsupportedError:
        return not_supported(self.op_type, self.name, self.opset, self.domain, why)


def scalar(array: Array) -> float | int:
    """The only element of an array."""
    return np.asarray(array).reshape(-1)[0].item()
