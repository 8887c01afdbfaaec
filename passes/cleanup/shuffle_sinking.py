"""How a shuffle in front of a layer becomes one behind it: what happens to axes and constants."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import Attribute, Operation, SSAValue

from mlirt.dialects.integer_list import integer_list, integers
from mlirt.dialects.tensor_types import dims, element_count, rank, with_dims
from mlirt.dialects.trt.activation import ActivationOp
from mlirt.dialects.trt.concatenation import ConcatenationOp
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.dialects.trt.cumulative import CumulativeOp
from mlirt.dialects.trt.elementwise import ElementwiseOp
from mlirt.dialects.trt.identity import IdentityOp
from mlirt.dialects.trt.padding import PaddingOp
from mlirt.dialects.trt.parametric_relu import ParametricReluOp
from mlirt.dialects.trt.quantize import DequantizeOp, QuantizeOp
from mlirt.dialects.trt.reduce import ReduceOp
from mlirt.dialects.trt.scale import ScaleMode, ScaleOp
from mlirt.dialects.trt.select import SelectOp
from mlirt.dialects.trt.softmax import SoftmaxOp
from mlirt.dialects.trt.unary import UnaryOp
from mlirt.passes.cleanup.permutations import (
    Dims,
    Permutation,
    Rearrangement,
    inverse,
    permuted,
    reshape,
    transpose,
)
from mlirt.passes.cleanup.rewriting import insert_before
from mlirt.passes.cleanup.shuffles import shuffle

# The properties of the layer above the transposition; None where it cannot move.
Moved = Callable[[Operation, Permutation], Mapping[str, Attribute] | None]


def _unchanged(op: Operation, permutation: Permutation) -> Mapping[str, Attribute] | None:
    return op.properties


def _axis(name: str) -> Moved:
    """A layer with one axis: it becomes the axis that the transposition put there."""

    def moved(op: Operation, permutation: Permutation) -> Mapping[str, Attribute] | None:
        axis = op.properties.get(name)
        if not isinstance(axis, IntegerAttr):
            return op.properties
        return {**op.properties, name: IntegerAttr(permutation[axis.value.data], i64)}

    return moved


def _padding(op: Operation, permutation: Permutation) -> Mapping[str, Attribute] | None:
    assert isinstance(op, PaddingOp)
    back = inverse(permutation)
    pre, post = (integer_list(permuted(integers(edge), back)) for edge in (op.pre, op.post))
    return {**op.properties, "pre": pre, "post": post}


def _reduction(op: Operation, permutation: Permutation) -> Mapping[str, Attribute] | None:
    assert isinstance(op, ReduceOp)
    if not op.keep_dims.value.data:
        return None
    return {**op.properties, "axes": integer_list(sorted(permutation[axis] for axis in integers(op.axes)))}


def _scale(op: Operation, permutation: Permutation) -> Mapping[str, Attribute] | None:
    assert isinstance(op, ScaleOp)
    if op.mode.data is ScaleMode.ELEMENTWISE:
        return None
    return _axis("channel_axis")(op, permutation)


# Layers of these classes compute the same on transposed operands; operands of equal rank may be constants.
_POINTWISE: dict[type[Operation], Moved] = {
    UnaryOp: _unchanged,
    ActivationOp: _unchanged,
    IdentityOp: _unchanged,
    ElementwiseOp: _unchanged,
    SelectOp: _unchanged,
    ParametricReluOp: _unchanged,
    ConcatenationOp: _axis("axis"),
}
# Layers whose first operand alone is a tensor to transpose.
_ON_FIRST: dict[type[Operation], Moved] = {
    SoftmaxOp: _axis("axis"),
    CumulativeOp: _axis("axis"),
    QuantizeOp: _axis("axis"),
    DequantizeOp: _axis("axis"),
    ScaleOp: _scale,
    PaddingOp: _padding,
    ReduceOp: _reduction,
}


MOVABLE = (*_POINTWISE, *_ON_FIRST)
"""The layers that a shuffle may move behind."""

# Layers of these classes compute element by element, and keep the dimensions of their operands.
_ELEMENTWISE = (UnaryOp, ActivationOp, IdentityOp, ElementwiseOp, SelectOp, ParametricReluOp)


def sink(op: Operation, how: Rearrangement, sources: Mapping[SSAValue, SSAValue]) -> Operation | None:
    """The layer on operands that are not rearranged yet, not placed anywhere; None where it is not possible.

    `sources` has what each rearranged operand is a rearrangement of. Constants that the layer needs in other forms are
    placed before `op`.
    """
    permutation = how.transposition
    if permutation is not None:
        return _under_transposition(op, permutation, sources)
    others = [value for value in op.operands if value not in sources]
    single = all(isinstance(value.owner, ConstantOp) and element_count(value.type) == 1 for value in others)
    if type(op) not in _ELEMENTWISE or not single or dims(op.results[0].type) != how.target:
        return None
    ones = reshape((1,) * len(how.target), (1,) * len(how.source))
    numbers = {value: insert_before(op, shuffle(value, ones)) for value in others}
    return _rebuilt(op, {**sources, **numbers}, op.properties, how.source)


def below(above: Operation, how: Rearrangement) -> Rearrangement:
    """What is left to do behind the layer that `sink` gave."""
    permutation = how.transposition
    return how if permutation is None else transpose(dims(above.results[0].type), permutation)


def _under_transposition(
    op: Operation, permutation: Permutation, sources: Mapping[SSAValue, SSAValue]
) -> Operation | None:
    everywhere, first = _POINTWISE.get(type(op)), _ON_FIRST.get(type(op))
    if everywhere is not None:
        others = [value for value in op.operands if value not in sources]
        if not all(isinstance(value.owner, ConstantOp) and rank(value.type) == len(permutation) for value in others):
            return None
        properties = everywhere(op, permutation)
    elif first is not None and op.operands[0] in sources and not any(v in sources for v in op.operands[1:]):
        properties, others = first(op, permutation), []
    else:
        return None
    if properties is None:
        return None
    constants = {value: _untransposed(op, value, permutation) for value in others}
    before = permuted(dims(op.results[0].type), inverse(permutation))
    return _rebuilt(op, {**sources, **constants}, properties, before)


def _untransposed(op: Operation, constant: SSAValue, permutation: Permutation) -> SSAValue:
    """A constant as it is before the transposition; fold-constants computes it."""
    shape = dims(constant.type)
    if all(length == 1 for length in shape):
        return constant
    return insert_before(op, shuffle(constant, transpose(shape, inverse(permutation))))


def _rebuilt(
    op: Operation, operands: Mapping[SSAValue, SSAValue], properties: Mapping[str, Attribute], shape: Dims
) -> Operation:
    return type(op).create(
        operands=[operands.get(value, value) for value in op.operands],
        properties=dict(properties),
        result_types=[with_dims(op.results[0].type, shape)],
    )
