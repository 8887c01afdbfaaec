"""A product with weights of few bits as a plain sum of products: correct everywhere, fast nowhere."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from xdsl.dialects import arith
from xdsl.dialects.builtin import i32
from xdsl.ir import Attribute, SSAValue

from mlirt.dialects.combine import ReduceKind
from mlirt.dialects.fused.epilogue import accumulator_type
from mlirt.dialects.fused.packed_contraction import PackedMatmulOp
from mlirt.dialects.tensor_types import dims, rank
from mlirt.kernels.lib.language import Value, kernel
from mlirt.kernels.lib.language.context import emit
from mlirt.kernels.lib.language.words import Elements, cast, narrowed, widened
from mlirt.kernels.lib.loops.loop_nest import Affine
from mlirt.kernels.lib.nests.reduction_nest import Accumulation, lower_accumulation
from mlirt.kernels.lib.tactics.lowering import Lowering

OPS = (PackedMatmulOp,)
TARGETS = frozenset({"cpu", "cuda"})
PRIORITY = 0


def lower(op: PackedMatmulOp, lowering: Lowering) -> bool:
    width = rank(op.output.type)
    steps = lowering.placements[op.lhs].strides
    job = Accumulation(
        op,
        kind=ReduceKind.ADD,
        reduced=(op.depth,),
        inputs=[Affine(op.lhs, (*steps[:-1], 0, steps[-1]))],
        body=partial(_product, op),
        indices_in_body=frozenset({width - 1, width}),
    )
    lower_accumulation(job, "matmul", lowering)
    return True


@kernel
def _product(op: PackedMatmulOp, scalars: Sequence[Value], indices: Sequence[Value]) -> Value:
    """A number times its weight: `x * (code - zero) * scale`; a block of codes shares its zero and its scale."""
    wide, bits, block = accumulator_type(op.epilogue), op.bits.value.data, op.block.value.data
    *_, column, depth = indices
    code = _at(op.codes, i32, column, depth // (8 // bits))
    if bits < 8:
        shift = emit(arith.IndexCastOp(depth % (8 // bits) * bits, i32))
        code = emit(arith.ShRUIOp(code, shift)) & ((1 << bits) - 1)
    if op.float4 is not None:
        weight = _float4(code, wide) * _at(op.scale, wide, column, depth // block)
    else:
        zero, scale = _at(op.zero, wide, column, depth // block), _at(op.scale, wide, column, depth // block)
        weight = (cast(code, i32, wide) - zero) * scale
    return narrowed(widened(scalars[0], wide) * weight, wide, wide)


@kernel
def _float4(code: Value, wide: Attribute) -> Value:
    """The 4-bit float (e2m1) of a code: half of `m` for lower bits m below 4, else of `(2 + m mod 2) 2^(m / 2 - 1)`."""
    low = code & 7
    power = low >> 1
    double = (low & 1) + min(power, 1) * 2
    double = double if power < 2 else double << (power - 1)
    return cast(double if code < 8 else 0 - double, i32, wide) * 0.5


@kernel
def _at(value: SSAValue, wide: Attribute, row: Value, place: Value) -> Value:
    """One element of a matrix as a number; a dimension of length 1 has one for all places."""
    at = [0 if size == 1 else index for size, index in zip(dims(value.type), (row, place), strict=True)]
    return widened(Elements(value)[at], wide)
