"""Conditions that compare lengths: what is compared, as formulas of the network's dimensions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from mlirt.dialects.length_requirements import LengthRequirement, Relation
from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_types import dims, is_unknown
from mlirt.frontend.network.layers_index import IGatherLayer
from mlirt.frontend.network.layers_move import IShapeLayer, ISliceLayer
from mlirt.frontend.network.layers_pointwise import IElementWiseLayer, IIdentityLayer
from mlirt.frontend.network.layers_source import IConstantLayer
from mlirt.tensorrt.data_types import DataType
from mlirt.tensorrt.layer_enums import ElementWiseOperation as Kind
from mlirt.tensorrt.layer_enums import GatherMode

if TYPE_CHECKING:
    from mlirt.frontend.network.emission import Emission
    from mlirt.frontend.network.tensor import ITensor

_MAX_DEPTH = 16
_FORMULAS: dict[Kind, Callable[[Dim, Dim], Dim]] = {
    Kind.SUM: lambda a, b: a + b,
    Kind.SUB: lambda a, b: a - b,
    Kind.PROD: lambda a, b: a * b,
}
_VIOLATED = " Condition '==' violated: {} != {}. Instruction: CHECK_EQUAL {} {}."


def compared_lengths(condition: ITensor, index: int, emission: Emission, fault: str) -> list[LengthRequirement] | None:
    """What element `index` of a condition asks of lengths; None where it compares something else.

    What is equal is at least as large both ways: the check is left to the run, which says `fault` and the lengths.
    """
    layer = None if condition.producer is None else condition.producer.view()
    if not isinstance(layer, IElementWiseLayer) or layer.op not in (Kind.EQUAL, Kind.LESS, Kind.GREATER):
        return None
    inputs = [one for one in layer.record.inputs if one is not None]
    left, right = (_length(one, index, emission, 0) for one in inputs)
    if left is None or right is None:
        return None
    if layer.op is not Kind.EQUAL:
        small, large = (left, right) if layer.op is Kind.LESS else (right, left)
        return [LengthRequirement(Relation.AT_LEAST, large, small + 1, fault)]
    texts = [fault + _VIOLATED.format(*pair, *pair) for pair in (("{left}", "{right}"), ("{right}", "{left}"))]
    return [
        LengthRequirement(Relation.AT_LEAST, left, right, texts[0]),
        LengthRequirement(Relation.AT_LEAST, right, left, texts[1]),
    ]


def _length(tensor: ITensor, index: int, emission: Emission, depth: int) -> Dim | None:
    """An element of shape arithmetic as a formula; None where data decide."""
    place = index if len(tensor.shape) and tensor.shape[0] != 1 else 0
    if tensor.producer is None or depth == _MAX_DEPTH:
        return None
    layer = tensor.producer.view()
    inputs = [one for one in tensor.producer.inputs if one is not None]
    found = _made(layer, inputs, place, emission, depth + 1)
    return None if found is None or is_unknown(found) else found


def _made(layer: object, inputs: Sequence[ITensor], index: int, emission: Emission, depth: int) -> Dim | None:
    if isinstance(layer, IConstantLayer):
        array = layer.weights.ravel()
        return int(array[index]) if array.dtype.kind == "i" and index < array.size else None
    if isinstance(layer, IShapeLayer):
        lengths = dims(emission.value_of(inputs[0]).type)
        return lengths[index] if index < len(lengths) else None
    if isinstance(layer, IIdentityLayer):
        whole = inputs[0].dtype in (DataType.INT32, DataType.INT64)
        return _length(inputs[0], index, emission, depth) if whole else None
    if isinstance(layer, ISliceLayer) and len(inputs) == 1 and layer.start and layer.stride:
        return _length(inputs[0], int(layer.start[0]) + index * int(layer.stride[0]), emission, depth)
    if isinstance(layer, IGatherLayer) and layer.mode is GatherMode.DEFAULT and len(inputs[0].shape) == 1:
        place = _length(inputs[1], index, emission, depth)
        return _length(inputs[0], place, emission, depth) if isinstance(place, int) and place >= 0 else None
    if isinstance(layer, IElementWiseLayer) and layer.op in _FORMULAS:
        left, right = (_length(one, index, emission, depth) for one in inputs)
        return None if left is None or right is None else _FORMULAS[layer.op](left, right)
    return None
