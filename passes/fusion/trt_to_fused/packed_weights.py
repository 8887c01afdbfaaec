"""Numbers that packed codes stand for, where they are computed at run time: of rows of a table, or for a GPU."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue

from mlirt.dialects.fused.access import AccessAttr, iteration
from mlirt.dialects.fused.scalar_builder import Scalars, compute_type
from mlirt.dialects.packed_codes import middle
from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_types import dims, element_of, tensor
from mlirt.dialects.trt.packed_weights import DequantizeBlocksOp
from mlirt.passes.fusion.trt_to_fused.conversion import Conversion, Conversions


def convert_dequantize_blocks(at: Conversion) -> None:
    """`trt.dequantize_blocks` becomes (code - zero point) * scale over rows, blocks, their bytes, and codes in these.

    What the last block has beyond the row is cut off.
    """
    op = at.op
    assert isinstance(op, DequantizeBlocksOp)
    bits, block, depth = (one.value.data for one in (op.bits, op.block, op.depth))
    *outer, _ = dims(op.codes.type)
    per, blocks = 8 // bits, -(-depth // block)
    space: list[Dim] = [*outer, blocks, block // per, per]
    rows = [0 if size == 1 else iteration(axis) for axis, size in enumerate(outer)]
    place = 0 if blocks == 1 else iteration(len(outer))
    byte = AccessAttr.of([*rows, place * (block // per) + iteration(len(outer) + 1)])
    compute = compute_type(element_of(op.scale.type))
    element = element_of(op.codes.type)

    def code(s: Scalars, x: Sequence[SSAValue]) -> SSAValue:
        s, whole = s.on(compute), s.on(i32)
        value = whole.cast(x[0], element)
        if per > 1:
            shift = whole.mul(whole.index(len(space) - 1), whole.constant(bits))
            value = whole.add_op(arith.ShRUIOp(value, shift))
            value = whole.add_op(arith.AndIOp(value, whole.constant((1 << bits) - 1)))
        if op.float4 is not None:
            return s.mul(_float4(s, whole, value), s.cast(x[1], element_of(op.scale.type)))
        zero = s.constant(middle(bits)) if len(x) < 3 else s.cast(x[2], element_of(coefficients[1].type))
        return s.mul(s.sub(s.cast(value, i32), zero), s.cast(x[1], element_of(op.scale.type)))

    coefficients = [op.scale] if op.zero_point is None else [op.scale, op.zero_point]
    access = [byte, *(_by_blocks(one, [*rows, place]) for one in coefficients)]
    result = tensor(element_of(op.output.type), space)
    numbers = at.pointwise([op.codes, *coefficients], result, None, code, yields=compute, access=access)
    whole = at.viewed(numbers, [*outer, blocks * block])
    if blocks * block != depth:
        shape = dims(op.output.type)
        whole = at.moved(whole, shape, [0 if size == 1 else iteration(axis) for axis, size in enumerate(shape)])
    at.replace(whole)


def _float4(s: Scalars, whole: Scalars, code: SSAValue) -> SSAValue:
    """A 4-bit float: twice its magnitude is `m` below 4, else `(2 + m mod 2) 2^(m / 2 - 1)`, for the lower bits m."""
    low = whole.add_op(arith.AndIOp(code, whole.constant(7)))
    power = whole.add_op(arith.ShRUIOp(low, whole.constant(1)))
    odd = whole.add_op(arith.AndIOp(low, whole.constant(1)))
    shift = whole.add_op(arith.MaxSIOp(whole.sub(power, whole.constant(1)), whole.constant(0)))
    lead = whole.mul(whole.add_op(arith.MinSIOp(power, whole.constant(1))), whole.constant(2))
    double = whole.add_op(arith.ShLIOp(whole.add(lead, odd), shift))
    negative = whole.add_op(arith.ShRUIOp(code, whole.constant(3)))
    sign = whole.sub(whole.constant(1), whole.mul(negative, whole.constant(2)))
    return s.mul(s.cast(whole.mul(double, sign), i32), s.constant(0.5))


def _by_blocks(coefficient: SSAValue, indices: Sequence[Dim]) -> AccessAttr:
    """One element a block, or one for all."""
    is_one = all(size == 1 for size in dims(coefficient.type))
    return AccessAttr.of([0] * len(indices) if is_one else indices)


CONVERSIONS: Conversions = {DequantizeBlocksOp: convert_dequantize_blocks}
