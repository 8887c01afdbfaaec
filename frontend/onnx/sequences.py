"""Values that are not one tensor: sequences, whose length is known when a network is read, and optionals without value.

The network itself has tensors alone. A sequence is as many of them as it has items, each with a shape of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.ir import Attribute

from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_types import element_type, tensor
from mlirt.errors import UnsupportedError
from mlirt.frontend.importing.network import Network, Value

if TYPE_CHECKING:
    from mlirt.frontend.onnx.node import Node

_TAKE_SEQUENCES = frozenset(
    {
        "ConcatFromSequence",
        "Identity",
        "Loop",
        "Optional",
        "OptionalGetElement",
        "OptionalHasElement",
        "SequenceAt",
        "SequenceConstruct",
        "SequenceErase",
        "SequenceInsert",
        "SequenceLength",
        "SequenceMap",
    }
)


class SequenceValue(Value):
    """Tensors of one element type in a row."""

    def __init__(self, items: Sequence[Value], element: Attribute) -> None:
        super().__init__(tensor(element, []))
        self.items = tuple(items)


class RowSequence(Value):
    """A sequence whose length only the run tells: its items are the rows of a tensor, and so have one shape."""

    def __init__(self, rows: Value) -> None:
        super().__init__(tensor(rows.element, []))
        self.rows = rows


class MissingValue(Value):
    """What an optional without a value holds."""

    def __init__(self) -> None:
        super().__init__(tensor(element_type("float32"), []))


def is_tensor_value(value: Value | None) -> bool:
    """Whether a value is one tensor."""
    return not isinstance(value, SequenceValue | RowSequence | MissingValue)


def check_sequence_inputs(node: Node) -> None:
    """Raise where an op that computes with tensors gets something else."""
    for k, value in enumerate(node.inputs):
        if not is_tensor_value(value) and node.op_type not in _TAKE_SEQUENCES:
            what = "an optional without a value" if isinstance(value, MissingValue) else "a sequence"
            raise node.invalid(f"expected a tensor as input {k}, but it is {what}")


def sequence_input(node: Node, k: int = 0) -> SequenceValue:
    """Input `k`, which must be a sequence."""
    value = node.input(k)
    if isinstance(value, RowSequence):
        raise node.unsupported("how long its sequence is only the run tells")
    if not isinstance(value, SequenceValue):
        raise node.invalid(f"expected a sequence as input {k}, but it is a tensor or missing")
    return value


def item_name(name: str, k: int) -> str:
    """What an item of a sequence is called as an input or output of the network."""
    return f"{name}[{k}]"


def named_parts(name: str, value: Value) -> list[tuple[str, Value]]:
    """The tensors of an output of the network."""
    if isinstance(value, MissingValue):
        raise UnsupportedError(f"the graph output {name!r} is an optional without a value; an engine returns tensors")
    if isinstance(value, RowSequence):
        raise UnsupportedError(
            f"how long the graph output {name!r} is, a sequence, only the run tells; make a tensor of it"
        )
    if isinstance(value, SequenceValue):
        return [(item_name(name, k), item) for k, item in enumerate(value.items)]
    return [(name, value)]


Form = tuple[object, ...]


def flattened(values: Sequence[Value]) -> list[Value]:
    """The tensors of values of all kinds."""
    return [part for value in values for part in (value.items if isinstance(value, SequenceValue) else _tensors(value))]


def _tensors(value: Value) -> list[Value]:
    return [] if isinstance(value, MissingValue) else [value]


def form(values: Sequence[Value]) -> Form:
    """What tells tensors, sequences of some length, and missing values apart."""
    return tuple(
        (len(value.items), str(value.element)) if isinstance(value, SequenceValue) else is_tensor_value(value)
        for value in values
    )


def formed(parts: Sequence[Value], like: Sequence[Value]) -> list[Value]:
    """Tensors put together as `like` is: the inverse of `flattened`."""
    rest = iter(parts)
    result: list[Value] = []
    for value in like:
        if isinstance(value, SequenceValue):
            result.append(SequenceValue([next(rest) for _ in value.items], value.element))
        else:
            result.append(next(rest) if is_tensor_value(value) else MissingValue())
    return result


def stacked(net: Network, items: Sequence[Value]) -> Value:
    """Items of one shape along a new first axis."""
    from mlirt.frontend.importing import layers

    return layers.concatenate(net, [layers.unsqueeze(net, item, [0]) for item in items], 0)


def merged_dims(value: Value, axis: int) -> list[Dim]:
    """The dimensions of a tensor whose dimensions at `axis` and behind it become one."""
    return [*value.dims[:axis], value.dims[axis] * value.dims[axis + 1], *value.dims[axis + 2 :]]
