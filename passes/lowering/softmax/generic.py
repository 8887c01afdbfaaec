"""Softmax: per row the largest element, the sum of exponentials, and then the elements, all in one launch."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import math
from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import SSAValue

from mlirt.dialects.fused.softmax import SoftmaxOp
from mlirt.dialects.kernel.core import ReduceKind
from mlirt.dialects.tensor_types import dims, element_of
from mlirt.passes.lowering.loops.rows import rows, whole
from mlirt.passes.lowering.lowering import Lowering
from mlirt.passes.lowering.tiles.problem import is_half
from mlirt.passes.lowering.trt_to_fused.scalar_builder import compute_type

OPS = (SoftmaxOp,)
TARGETS = frozenset({"cpu", "cuda"})
PRIORITY = 0


def lower(op: SoftmaxOp, lowering: Lowering) -> bool:
    """`parallel (rows) { reduce max; reduce add exp(x - max); parallel (row) { exp(x - max) / sum } }`."""
    axis, element = op.axis.value.data, element_of(op.input.type)
    wide = compute_type(element)
    k = lowering.kernel("softmax")
    if k.is_cuda and is_half(element):
        k.function.attributes["close_functions"] = UnitAttr()  # far closer than results are rounded to
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
        # On the CPU the exponentials are kept in the result where that is exact; threads of a block would have to wait.
        keeps = not k.is_cuda and not op.log.value.data and element == wide

        def summand(at: Sequence[SSAValue]) -> SSAValue:
            value = exponential(at)
            if keeps:
                code.write(value, wide, 1, [*here, *at])
            return value

        def kept(at: Sequence[SSAValue]) -> SSAValue:
            return code.read(1, wide, [*here, *at]) if keeps else exponential(at)

        total = k.reduce(ReduceKind.ADD, row, k.constant(0, wide), summand)
        s = k.scalars(wide)
        logarithm = k.value(math.LogOp(total)) if op.log.value.data else None
        inverse = s.div(s.constant(1.0), total) if keeps or k.is_cuda else None
        with k.parallel(row) as at:
            s = k.scalars(wide)
            if logarithm is not None:
                value = s.sub(shifted(at, largest), logarithm)
            else:
                value = s.div(kept(at), total) if inverse is None else s.mul(kept(at), inverse)
            code.write(value, wide, 1, [*here, *at])
    k.finish(op)
    return True
