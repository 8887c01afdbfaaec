"""Running sums and products: rows in parallel, each from one end to the other."""

from __future__ import annotations

from xdsl.dialects.builtin import f32, f64
from xdsl.ir import Attribute

from mlirt.dialects.fused.cumulative import CumulativeOp
from mlirt.dialects.fused.scalar_builder import compute_type
from mlirt.dialects.tensor_types import dims, element_of
from mlirt.kernels.lib.language import build, kernel
from mlirt.kernels.lib.language.nest_words import NestOperand
from mlirt.kernels.lib.language.words import extent, parallel
from mlirt.kernels.lib.loops.rows import rows, whole
from mlirt.kernels.lib.tactics.lowering import Lowering
from mlirt.kernels.rows.running_totals import totals_of


def lower(op: CumulativeOp, lowering: Lowering) -> bool:
    operands = [whole(value, lowering) for value in (op.input, op.output)]
    k = lowering.kernel("cumulative")
    code, border = rows(k, dims(op.input.type), op.axis.value.data, operands)
    wide = total_type(op, lowering)
    build(k, _cumulative, NestOperand(code, 0, wide), NestOperand(code, 1, wide), border, op)
    k.finish(op)
    return True


def total_type(op: CumulativeOp, lowering: Lowering) -> Attribute:
    """Totals of float32 are float64 on a CPU: a chain of additions takes no longer so, and 1,000 roundings are one."""
    wide = compute_type(element_of(op.input.type))
    return f64 if wide == f32 and lowering.target.kind == "cpu" else wide


@kernel
def _cumulative(x: NestOperand, y: NestOperand, border: int, op: CumulativeOp) -> None:
    """`for each row: total = 0; for i: total += x[i]; y[i] = total`, or products that begin with 1."""
    (outer, (row,)), combiner = x.code.split(border), totals_of(op, x.wide)
    length = extent(row)
    for loops in parallel(outer):
        here, total = x.code.loops_before(border, loops), combiner.neutral[0]
        for i in range(length):
            at = [*here, length - 1 - i if op.reverse.value.data else i]
            before = total
            total = combiner.of(before, x[at])
            y[at] = before if op.exclusive.value.data else total
