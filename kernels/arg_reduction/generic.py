"""The position of an extreme: first the extreme itself, then the first (or last) place that holds it."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.arith import CmpfOp, OrIOp
from xdsl.ir import SSAValue

from mlirt.dialects.fused.arg_reduction import ArgReductionOp
from mlirt.dialects.fused.reduction import ReductionKind, neutral
from mlirt.dialects.fused.scalar_builder import compute_type
from mlirt.dialects.kernel.core import ReduceKind
from mlirt.dialects.tensor_types import dims, element_name, element_of, is_float
from mlirt.kernels.lib.loops.block_lanes import number
from mlirt.kernels.lib.loops.rows import inserted_axis, rows, whole, without_axis
from mlirt.kernels.lib.tactics.lowering import Lowering

OPS = (ArgReductionOp,)
TARGETS = frozenset({"cpu", "cuda"})
PRIORITY = 0


def lower(op: ArgReductionOp, lowering: Lowering) -> bool:
    """`parallel (rows) { best = reduce max x; reduce min (i where x[i] is best) }`."""
    axis, element = op.axis.value.data, element_of(op.input.type)
    result = whole(op.output, lowering)
    result = without_axis(result, axis) if op.keeps_dims else inserted_axis(result, axis)
    wide = compute_type(element)
    k = lowering.kernel("arg_reduction")
    code, border = rows(k, dims(op.input.type), axis, [whole(op.input, lowering), result])
    outer, row = code.split(border)
    kind = ReductionKind(op.kind.data.value)
    is_last = bool(op.select_last.value.data)
    with k.parallel(outer) as loops:
        here = code.loops_before(border, loops)
        start = number(k, neutral(kind, element_name(wide)), wide)
        best = k.reduce(ReduceKind(kind.value), row, start, lambda at: code.read_typed(0, wide, [*here, *at]))
        nowhere = k.constant(-1) if is_last else k.extent(row[0])

        def place(at: Sequence[SSAValue]) -> SSAValue:
            value = code.read(0, wide, [*here, *at])
            found = k.scalars(wide).compare("eq", value, k.ready(best))
            if is_float(wide):  # NaN equals nothing, and is the extreme where it occurs
                found = k.value(OrIOp(found, k.value(CmpfOp(value, value, "uno"))))
            return k.select(found, at[0], nowhere)

        position = k.reduce(ReduceKind.MAX if is_last else ReduceKind.MIN, row, nowhere, place)
        code.store(k.to_integer(position, element_of(op.output.type)), 1, here)
    k.finish(op)
    return True
