"""Quantisation and its inverse as scalar formulas."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import math
from xdsl.dialects.builtin import f32, f64
from xdsl.ir import Attribute, SSAValue

from mlirt.dialects.fused.access import AccessAttr, broadcast_access, iteration
from mlirt.dialects.fused.scalar_builder import Formula, Scalars, compute_type
from mlirt.dialects.tensor_types import byte_width, dims, element_of, is_float8, is_unsigned, rank
from mlirt.dialects.trt.quantize import DequantizeOp, QuantizeOp
from mlirt.passes.fusion.trt_to_fused.conversion import Conversion, Conversions


def convert_quantize(at: Conversion) -> None:
    """`trt.quantize` becomes round(x / scale) + zero point, half to even, clamped to the range of the result.

    To 8-bit floats it is x / scale, rounded as they are.
    """
    op = at.op
    assert isinstance(op, QuantizeOp)
    target = element_of(op.output.type)
    if is_float8(target):
        _replace(at, op, compute_type(element_of(op.scale.type)), lambda s, x: s.div(x[0], x[1]))
        return
    bits = 8 * byte_width(target)
    low, high = (0, 2**bits - 1) if is_unsigned(target) else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    # Single precision holds every 16-bit integer, and a tie must stay a tie; longer integers need double.
    compute = f32 if bits <= 16 and compute_type(element_of(op.scale.type)) == f32 else f64

    def formula(s: Scalars, x: Sequence[SSAValue]) -> SSAValue:
        rounded = s.function(math.RoundEvenOp, s.div(x[0], x[1]))
        shifted = s.add(rounded, x[2]) if len(x) > 2 else rounded
        return s.min(s.max(shifted, s.constant(low)), s.constant(high))

    _replace(at, op, compute, formula)


def convert_dequantize(at: Conversion) -> None:
    """`trt.dequantize` becomes (x - zero point) * scale."""
    op = at.op
    assert isinstance(op, DequantizeOp)

    def formula(s: Scalars, x: Sequence[SSAValue]) -> SSAValue:
        return s.mul(s.sub(x[0], x[2]) if len(x) > 2 else x[0], x[1])

    _replace(at, op, compute_type(element_of(op.scale.type)), formula)


def _replace(at: Conversion, op: QuantizeOp | DequantizeOp, compute: Attribute, formula: Formula) -> None:
    coefficients = [op.scale] if op.zero_point is None else [op.scale, op.zero_point]
    shape = dims(op.output.type)
    along = AccessAttr.of([iteration(op.axis.value.data)] if op.axis is not None and rank(op.scale.type) else [])
    access = [broadcast_access(dims(op.input.type), shape), *[along] * len(coefficients)]
    at.replace(at.pointwise([op.input, *coefficients], op.output.type, compute, formula, access=access))


CONVERSIONS: Conversions = {QuantizeOp: convert_quantize, DequantizeOp: convert_dequantize}
