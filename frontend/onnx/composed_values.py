"""Sequences and optionals of a model's inputs and outputs, as the arrays that an engine takes and gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from onnx import ValueInfoProto

from mlirt.frontend.onnx.sequences import item_name

GivenShapes: TypeAlias = "dict[str, list[tuple[int, ...]] | None]"


def holds_sequence(value: ValueInfoProto) -> bool:
    """Whether an input or output is a sequence, or an optional one."""
    type_ = value.type.optional_type.elem_type if is_optional(value) else value.type
    return type_.HasField("sequence_type")


def is_optional(value: ValueInfoProto) -> bool:
    return value.type.HasField("optional_type")


def is_composed(value: ValueInfoProto) -> bool:
    """Whether what an engine takes for an input depends on the value that comes."""
    return is_optional(value) or holds_sequence(value)


def taken_apart(inputs: Sequence[ValueInfoProto], feeds: Mapping[str, Any]) -> tuple[dict[str, Any], GivenShapes]:
    """The arrays by the names that the network gives them, and for each sequence or missing value its shapes."""
    arrays = {name: value for name, value in feeds.items() if value is not None}
    shapes: GivenShapes = {}
    for value in inputs:
        given = feeds.get(value.name)
        if is_optional(value) and given is None:
            shapes[value.name] = None
        elif holds_sequence(value) and given is not None:
            items = list(arrays.pop(value.name))
            arrays.update({item_name(value.name, k): item for k, item in enumerate(items)})
            shapes[value.name] = [tuple(item.shape) for item in items]
    return arrays, shapes


def put_together(value: ValueInfoProto, results: Mapping[str, Any]) -> Any:
    """An output of the model from an engine's outputs."""
    if not holds_sequence(value):
        return results[value.name]
    items: list[Any] = []
    while item_name(value.name, len(items)) in results:
        items.append(results[item_name(value.name, len(items))])
    return items
