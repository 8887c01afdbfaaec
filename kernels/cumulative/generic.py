"""Running sums and products: rows in parallel, each from one end to the other."""

from __future__ import annotations

from xdsl.ir import SSAValue

from mlirt.dialects.fused.cumulative import CumulativeOp
from mlirt.dialects.fused.scalar_builder import compute_type, scalar_type
from mlirt.dialects.running_totals import CumulativeKind
from mlirt.dialects.tensor_types import dims, element_of
from mlirt.kernels.lib.loops.rows import rows, whole
from mlirt.kernels.lib.tactics.lowering import Lowering

OPS = (CumulativeOp,)
TARGETS = frozenset({"cpu", "cuda"})
PRIORITY = 0


def lower(op: CumulativeOp, lowering: Lowering) -> bool:
    """`parallel (rows) { for i: acc = combine(acc, x[i]); y[i] = acc }`."""
    element = element_of(op.input.type)
    wide = compute_type(element)
    is_sum, backwards, exclusive = op.kind.data is CumulativeKind.SUM, op.reverse.value.data, op.exclusive.value.data
    k = lowering.kernel("cumulative")
    code, border = rows(
        k, dims(op.input.type), op.axis.value.data, [whole(op.input, lowering), whole(op.output, lowering)]
    )
    outer, (length,) = code.split(border)
    extent = k.extent(length)
    start = k.constant(0 if is_sum else 1, scalar_type(wide))
    with k.parallel(outer) as loops:
        here = code.loops_before(border, loops)

        def step(i: SSAValue, carried: list[SSAValue]) -> list[SSAValue]:
            place = k.sub(k.sub(extent, 1), i) if backwards else i
            s = k.scalars(wide)
            value = code.read(0, wide, [*here, place])
            total = s.add(carried[0], value) if is_sum else s.mul(carried[0], value)
            code.write(carried[0] if exclusive else total, wide, 1, [*here, place])
            return [total]

        k.loop(extent, [start], step)
    k.finish(op)
    return True
