"""The position of an extreme: first the extreme itself, then the first (or last) place that holds it."""

from __future__ import annotations

from collections.abc import Sequence

from mlirt.dialects.fused.arg_reduction import ArgReductionOp
from mlirt.dialects.fused.reduction import ReductionKind, neutral
from mlirt.dialects.fused.scalar_builder import compute_type
from mlirt.dialects.kernel.core import ReduceKind
from mlirt.dialects.tensor_types import dims, element_name, element_of, is_float
from mlirt.kernels.lib.language import Value, build, builder, kernel, value_of
from mlirt.kernels.lib.language.nest_words import NestOperand
from mlirt.kernels.lib.language.words import Box, extent, is_nan, parallel, place, reduction
from mlirt.kernels.lib.loops.block_lanes import number
from mlirt.kernels.lib.loops.rows import inserted_axis, rows, whole, without_axis
from mlirt.kernels.lib.tactics.lowering import Lowering


def lower(op: ArgReductionOp, lowering: Lowering) -> bool:
    axis, result = op.axis.value.data, whole(op.output, lowering)
    result = without_axis(result, axis) if op.keeps_dims else inserted_axis(result, axis)
    k = lowering.kernel("arg_reduction")
    code, border = rows(k, dims(op.input.type), axis, [whole(op.input, lowering), result])
    build(k, _position, NestOperand(code, 0, compute_type(element_of(op.input.type))), border, op)
    k.finish(op)
    return True


@kernel
def _position(x: NestOperand, border: int, op: ArgReductionOp) -> None:
    """`for each row: best = max(x); y = min(i where x[i] is best)`."""
    k, code, kind, is_last = builder(), x.code, ReductionKind(op.kind.data.value), bool(op.select_last.value.data)
    outer, row = code.split(border)
    for loops in parallel(outer):
        here = code.loops_before(border, loops)

        def read(at: Sequence[Value]) -> Value:
            return value_of(code.read_typed(0, x.wide, [*here, *at]))

        best = reduction(ReduceKind(kind.value), Box(row), number(k, neutral(kind, element_name(x.wide)), x.wide), read)
        nowhere = place(-1) if is_last else extent(row[0])

        def found(at: Sequence[Value]) -> Value:
            value = x[*here, *at]
            # NaN equals nothing, and is the extreme where it occurs.
            return at[0] if value == k.ready(best) or (is_float(x.wide) and is_nan(value)) else nowhere

        position = reduction(ReduceKind.MAX if is_last else ReduceKind.MIN, Box(row), nowhere, found)
        code.store(k.to_integer(position, element_of(op.output.type)), 1, here)
