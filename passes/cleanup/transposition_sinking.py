"""How a transposition in front of a layer becomes one behind it: what happens to axes and constants."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import Attribute, Operation, SSAValue

from mlirt.dialects.integer_list import integer_list, integers
from mlirt.dialects.tensor_types import dims, rank, with_dims
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
from mlirt.dialects.trt.shuffle import ShuffleOp
from mlirt.dialects.trt.softmax import SoftmaxOp
from mlirt.dialects.trt.unary import UnaryOp
from mlirt.passes.cleanup.permutations import Permutation, inverse, permuted
from mlirt.passes.cleanup.rewriting import insert_before

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


def sink(op: Operation, permutation: Permutation, sources: Mapping[SSAValue, SSAValue]) -> SSAValue | None:
    """Emit `op` on untransposed operands and a transposition of its result; None where that is not possible.

    `sources` has what each transposed operand is a transposition of.
    """
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
    replaced = dict(sources) | {value: _untransposed(op, value, permutation) for value in others}
    return _emit(op, permutation, properties, replaced)


def _untransposed(op: Operation, constant: SSAValue, permutation: Permutation) -> SSAValue:
    """A constant as it is before the transposition; fold-constants computes it."""
    if all(length == 1 for length in dims(constant.type)):
        return constant
    back = integer_list(inverse(permutation))
    return insert_before(op, ShuffleOp.build_inferred([constant, None], {"first_transpose": back}))


def _emit(
    op: Operation, permutation: Permutation, properties: Mapping[str, Attribute], replaced: Mapping[SSAValue, SSAValue]
) -> SSAValue:
    result = op.results[0].type
    above = type(op).create(
        operands=[replaced.get(value, value) for value in op.operands],
        properties=dict(properties),
        result_types=[with_dims(result, permuted(dims(result), inverse(permutation)))],
    )
    value = insert_before(op, above)
    order = integer_list(permutation)
    return insert_before(op, ShuffleOp.build_inferred([value, None], {"first_transpose": order}))
