"""What an algorithm selector is told of a layer: the shapes of its tensors, and how they lie in memory."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.ir import Attribute, Operation

from mlirt.builder.tactics.algorithm_selector import AlgorithmContext, AlgorithmIOInfo
from mlirt.dialects.locations import name_of
from mlirt.dialects.tensor_types import channels_last, dims, element_of, memory_order, numpy_dtype, rank, strides
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.dialects.typical_sizes import Bounds, typical
from mlirt.tensorrt.data_types import DataType, data_type
from mlirt.tensorrt.dims import Dims
from mlirt.tensorrt.run_enums import TensorFormat

_MIN_IMAGE_RANK = 3  # dimensions of images with channels


def context_of(op: Operation, known: Mapping[str, int], bounds: Bounds) -> AlgorithmContext:
    """The layer at its usual sizes, `known`, and at those between which its symbols lie."""
    inputs, outputs = _tensors(op)
    smallest, largest = ({**known, **{name: pair[end] for name, pair in bounds.items()}} for end in (0, 1))
    shapes = tuple((_shape(one, smallest), _shape(one, known), _shape(one, largest)) for one in (*inputs, *outputs))
    return AlgorithmContext(name_of(op), tuple(map(str, inputs)), tuple(map(str, outputs)), shapes)


def tensors_of(op: Operation, known: Mapping[str, int]) -> tuple[AlgorithmIOInfo, ...]:
    """How the inputs, constants apart, and the outputs lie in memory at their usual sizes."""
    inputs, outputs = _tensors(op)
    return tuple(_described(one, known) for one in (*inputs, *outputs))


def _tensors(op: Operation) -> tuple[list[Attribute], list[Attribute]]:
    inputs = [value.type for value in op.operands if not isinstance(value.owner, ConstantOp)]
    return inputs, [value.type for value in op.results]


def _shape(of: Attribute, values: Mapping[str, int]) -> Dims:
    return Dims(typical(dim, values) for dim in dims(of))


def _described(of: Attribute, known: Mapping[str, int]) -> AlgorithmIOInfo:
    images = rank(of) >= _MIN_IMAGE_RANK and tuple(memory_order(of)) == channels_last(rank(of))
    steps = Dims(typical(step, known) for step in strides(of)[0])
    return AlgorithmIOInfo(TensorFormat.HWC if images else TensorFormat.LINEAR, _data_type(of), steps)


def _data_type(of: Attribute) -> DataType | None:
    try:
        return data_type(numpy_dtype(element_of(of)).name)
    except TypeError:
        return None
