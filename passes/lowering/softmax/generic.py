"""Softmax: per row the largest element, the sum of exponentials, and then the elements, all in one launch."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import math
from xdsl.ir import Operation, SSAValue

from mlirt.dialects.fused.softmax import SoftmaxOp
from mlirt.dialects.kernel.core import ReduceKind
from mlirt.dialects.tensor_types import dims, element_of
from mlirt.passes.lowering.lowering import Lowering
from mlirt.passes.lowering.rows import rows, whole
from mlirt.passes.lowering.trt_to_fused.scalar_builder import compute_type

OPS = (SoftmaxOp,)
TARGETS = frozenset({"cpu", "cuda"})
PRIORITY = 0


def lower(op: Operation, lowering: Lowering) -> bool:
    """`parallel (rows) { reduce max; reduce add exp(x - max); parallel (row) { exp(x - max) / sum } }`."""
    assert isinstance(op, SoftmaxOp)
    axis, element = op.axis.value.data, element_of(op.input.type)
    wide = compute_type(element)
    k = lowering.kernel("softmax")
    code, border = rows(k, dims(op.input.type), axis, [whole(op.input, lowering), whole(op.output, lowering)])
    outer, row = code.split(border)
    with k.parallel(outer) as loops:
        here = code.loops_before(border, loops)

        def shifted(at: Sequence[SSAValue], largest: SSAValue) -> SSAValue:
            return k.scalars(wide).sub(code.read(0, wide, [*here, *at]), largest)

        def exponential(at: Sequence[SSAValue]) -> SSAValue:
            return k.value(math.ExpOp(shifted(at, largest)))

        start = k.constant(float("-inf"), wide)
        largest = k.reduce(ReduceKind.MAX, row, start, lambda at: code.read(0, wide, [*here, *at]))
        total = k.reduce(ReduceKind.ADD, row, k.constant(0, wide), exponential)
        logarithm = k.value(math.LogOp(total)) if op.log.value.data else None
        with k.parallel(row) as at:
            s = k.scalars(wide)
            is_log = logarithm is not None
            value = s.sub(shifted(at, largest), logarithm) if is_log else s.div(exponential(at), total)
            code.write(value, wide, 1, [*here, *at])
    k.finish(op)
    return True
