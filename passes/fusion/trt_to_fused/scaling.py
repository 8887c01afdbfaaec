"""Affine scaling and conversions between element types."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Operation, SSAValue

from mlirt.dialects.fused.access import AccessAttr, broadcast_access, iteration
from mlirt.dialects.fused.scalar_builder import Scalars, compute_type
from mlirt.dialects.tensor_types import dims, element_of, is_float, rank
from mlirt.dialects.trt.identity import ROUNDS, IdentityOp
from mlirt.dialects.trt.scale import ScaleOp
from mlirt.passes.fusion.trt_to_fused.conversion import Conversion, Conversions


def convert_identity(at: Conversion) -> None:
    """`trt.identity` becomes a pointwise conversion, or nothing where the types are equal."""
    op = at.op
    assert isinstance(op, IdentityOp)
    value = at.cast(op.input, element_of(op.output.type))
    if ROUNDS in op.attributes and isinstance(value.owner, Operation):
        for inner in value.owner.walk():
            if isinstance(inner, arith.TruncFOp):
                inner.attributes[ROUNDS] = UnitAttr()
    at.replace(value)


def _power(s: Scalars, x: SSAValue, exponent: SSAValue) -> SSAValue:
    return s.function(math.PowFOp, x, exponent)


def convert_scale(at: Conversion) -> None:
    """`trt.scale` becomes (x * scale + shift) ** power with the coefficients read per channel, per element or once."""
    op = at.op
    assert isinstance(op, ScaleOp)
    compute = compute_type(element_of(op.input.type))
    if op.power is not None and not is_float(compute):
        raise at.unsupported(f"a power needs floating-point numbers, got {compute}; cast the input before")
    given = [operand for operand in (op.scale, op.shift, op.power) if operand is not None]
    steps = [
        step
        for step, operand in (
            (Scalars.mul, op.scale),
            (Scalars.add, op.shift),
            (_power, op.power),
        )
        if operand is not None
    ]

    def formula(s: Scalars, x: Sequence[SSAValue]) -> SSAValue:
        value = x[0]
        for step, coefficient in zip(steps, x[1:], strict=True):
            value = step(s, value, coefficient)
        return value

    access = [broadcast_access(dims(op.input.type), dims(op.output.type)), *(_coefficient(op, one) for one in given)]
    at.replace(at.pointwise([op.input, *given], op.output.type, compute, formula, access=access))


def _coefficient(op: ScaleOp, operand: SSAValue) -> AccessAttr:
    first = op.channel_axis.value.data
    return AccessAttr.of([iteration(first + axis) for axis in range(rank(operand.type))])


CONVERSIONS: Conversions = {IdentityOp: convert_identity, ScaleOp: convert_scale}
