"""Layers whose elements depend on their position: running sums, ramps, one-hot vectors."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from mlirt.dialects.fused.access import AccessAttr, iteration
from mlirt.dialects.fused.cumulative import CumulativeOp as FusedCumulativeOp
from mlirt.dialects.fused.scalar_builder import Scalars, compute_type
from mlirt.dialects.tensor_types import dims, element_of, rank
from mlirt.dialects.trt.cumulative import CumulativeOp
from mlirt.dialects.trt.fill import FillOp
from mlirt.dialects.trt.one_hot import OneHotOp
from mlirt.passes.fusion.trt_to_fused.conversion import Conversion, Conversions


def convert_cumulative(at: Conversion) -> None:
    """`trt.cumulative` becomes `fused.cumulative`."""
    op = at.op
    assert isinstance(op, CumulativeOp)
    exclusive, reverse = bool(op.exclusive.value.data), bool(op.reverse.value.data)
    at.replace(at.emit(FusedCumulativeOp(op.kind.data, op.input, op.axis.value.data, exclusive, reverse)))


def convert_fill(at: Conversion) -> None:
    """`trt.fill` becomes a pointwise op over positions: alpha + beta_0 d0 + beta_1 d1 + .."""
    op = at.op
    assert isinstance(op, FillOp)
    shape = dims(op.output.type)
    operands: list[SSAValue] = []
    access: list[AccessAttr] = []
    if op.alpha is not None:
        operands.append(op.alpha)
        access.append(AccessAttr.of([]))
    if op.beta is not None:
        operands += [op.beta] * len(shape)
        access += [AccessAttr.of([axis] if rank(op.beta.type) else []) for axis in range(len(shape))]
    has_alpha = op.alpha is not None

    def formula(s: Scalars, x: Sequence[SSAValue]) -> SSAValue:
        value = x[0] if has_alpha else s.constant(0)
        for axis, step in enumerate(x[has_alpha:]):
            value = s.add(value, s.mul(s.index(axis), step))
        return value

    compute = compute_type(element_of(op.output.type))
    at.replace(at.pointwise(operands, op.output.type, compute, formula, access=access))


def convert_one_hot(at: Conversion) -> None:
    """`trt.one_hot` becomes a choice between two values by the position along the new axis."""
    op = at.op
    assert isinstance(op, OneHotOp)
    shape, axis, source = dims(op.output.type), op.axis.value.data, element_of(op.indices.type)
    places = [iteration(k if k < axis else k + 1) for k in range(rank(op.indices.type))]
    access = [AccessAttr.of(places), AccessAttr.of([0]), AccessAttr.of([1])]

    def formula(s: Scalars, x: Sequence[SSAValue]) -> SSAValue:
        whole = s.on(i64)
        index = whole.cast(x[0], source)
        wrapped = whole.add(index, whole.size(shape[axis]))
        index = whole.select(whole.compare("lt", index, whole.constant(0)), wrapped, index)
        return s.select(whole.compare("eq", index, whole.index(axis)), x[2], x[1])

    operands = [op.indices, op.values, op.values]
    at.replace(at.pointwise(operands, op.output.type, None, formula, element_of(op.output.type), access))


CONVERSIONS: Conversions = {
    CumulativeOp: convert_cumulative,
    FillOp: convert_fill,
    OneHotOp: convert_one_hot,
}
