"""Reductions, softmax and what else combines the elements along an axis."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import i8
from xdsl.ir import Attribute, Block, Region

from mlirt.dialects.combine import ReduceKind as CombineKind
from mlirt.dialects.fused.access import AccessAttr, iteration
from mlirt.dialects.fused.reduction import ReductionOp
from mlirt.dialects.fused.scalar_builder import (
    Scalars,
    accumulator_type,
    arguments_of,
    conversion_region,
    extreme_type,
    yield_as,
)
from mlirt.dialects.fused.softmax import SoftmaxOp as FusedSoftmaxOp
from mlirt.dialects.integer_list import integers
from mlirt.dialects.symbolic import Dim, product
from mlirt.dialects.tensor_types import dims, element_of, is_bool
from mlirt.dialects.trt.reduce import ReduceKind, ReduceOp
from mlirt.dialects.trt.softmax import SoftmaxOp
from mlirt.passes.fusion.trt_to_fused.conversion import Conversion, Conversions

_KINDS = {
    ReduceKind.SUM: CombineKind.ADD,
    ReduceKind.AVG: CombineKind.ADD,
    ReduceKind.PROD: CombineKind.MUL,
    ReduceKind.MAX: CombineKind.MAX,
    ReduceKind.MIN: CombineKind.MIN,
}
_MEAN_OF_NO_BYTES = -128
_OF_BOOLEANS = {ReduceKind.MAX: CombineKind.OR, ReduceKind.MIN: CombineKind.AND}


def convert_reduce(at: Conversion) -> None:
    """`trt.reduce` becomes `fused.reduction`; a mean divides in the epilogue by the number of elements."""
    op = at.op
    assert isinstance(op, ReduceOp)
    axes, shape, element = sorted(integers(op.axes)), dims(op.input.type), element_of(op.input.type)
    if not axes:
        return at.replace(op.input)
    axes = [axis for axis in axes if shape[axis] != 1] or axes  # others reduce nothing
    reduced = [shape[axis] for axis in axes]
    extreme = op.kind.data in _OF_BOOLEANS
    kind = _OF_BOOLEANS[op.kind.data] if is_bool(element) else _KINDS[op.kind.data]
    accumulator = extreme_type(element) if extreme else accumulator_type(element)
    mean = op.kind.data is ReduceKind.AVG
    epilogue = mean_region(accumulator, element, product(reduced)) if mean else conversion_region(accumulator, element)
    body = conversion_region(element, accumulator)
    access = _access(len(shape), axes, integers(op.axes), keep=bool(op.keep_dims.value.data))
    at.replace(at.emit(ReductionOp(kind, [op.input], [access], reduced, op.output.type, body, epilogue)))


def _access(rank: int, axes: Sequence[int], gone: Sequence[int], *, keep: bool) -> AccessAttr:
    """Reduced axes come after the axes of the result, which has those that are `gone` only where it keeps them."""
    results = [axis for axis in range(rank) if keep or axis not in gone]
    place: dict[int, Dim] = {axis: iteration(results.index(axis)) for axis in results if axis not in axes}
    place |= {axis: iteration(len(results) + number) for number, axis in enumerate(axes)}
    return AccessAttr.of([place.get(axis, 0) for axis in range(rank)])


def mean_region(accumulator: Attribute, element: Attribute, count: Dim) -> Region:
    """An epilogue that divides the accumulator by the number of elements."""
    block = Block()
    (total,) = arguments_of(block, [accumulator])
    scalars = Scalars(block, accumulator)
    divisor = scalars.size(count)
    mean = scalars.div(total, divisor)
    if element == i8 and (count == 0 or not isinstance(count, int)):
        nothing = scalars.compare("eq", divisor, scalars.constant(0))
        mean = scalars.select(nothing, scalars.constant(_MEAN_OF_NO_BYTES), mean)
    yield_as(scalars, mean, element)
    return Region(block)


def convert_softmax(at: Conversion) -> None:
    """`trt.softmax` becomes `fused.softmax`."""
    op = at.op
    assert isinstance(op, SoftmaxOp)
    at.replace(at.emit(FusedSoftmaxOp(op.input, op.axis.value.data, bool(op.log.value.data))))


CONVERSIONS: Conversions = {ReduceOp: convert_reduce, SoftmaxOp: convert_softmax}
