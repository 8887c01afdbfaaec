"""What was found of rows becomes what softmax makes of it, in a kernel of its own behind the one that finds it.

for each row:
  the sum of the exponentials of all its elements
  of each element that was found: its exponential, divided by the sum; or its logarithm
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import math
from xdsl.ir import SSAValue

from mlirt.dialects.fused.scalar_builder import compute_type
from mlirt.dialects.fused.topk import Normalization, TopkOp
from mlirt.dialects.kernel.core import ReduceKind
from mlirt.dialects.tensor_types import dims, element_of
from mlirt.kernels.lib.loops.rows import rows, whole, without_axis
from mlirt.kernels.lib.tactics.lowering import Lowering


def normalize(op: TopkOp, lowering: Lowering) -> None:
    """Launch the kernel where an op normalises."""
    kind = op.normalization_kind()
    if kind is None:
        return
    axis, wide = op.axis.value.data, compute_type(element_of(op.input.type))
    k = lowering.kernel("shares")
    operands = [whole(op.input, lowering), without_axis(whole(op.values, lowering), axis)]
    code, border = rows(k, dims(op.input.type), axis, operands)
    outer, row = code.split(border)
    step = k.strides(op.values)[axis]
    with k.parallel(outer) as loops:
        here = code.loops_before(border, loops)

        def element(at: Sequence[SSAValue]) -> SSAValue:
            return code.read(0, wide, [*here, *at])

        def exponential(at: Sequence[SSAValue]) -> SSAValue:
            return k.value(math.ExpOp(k.scalars(wide).sub(element(at), largest)))

        # On a GPU other threads may have replaced it by then.
        is_first = bool(op.sorted.value.data) and not k.is_cuda
        lowest = k.constant(float("-inf"), wide)
        largest = code.read(1, wide, here) if is_first else k.reduce(ReduceKind.MAX, row, lowest, element)
        total = k.reduce(ReduceKind.ADD, row, k.constant(0.0, wide), exponential)
        s = k.scalars(wide)
        scale = k.value(math.LogOp(total)) if kind is Normalization.LOG_SOFTMAX else s.div(s.constant(1.0), total)
        with k.parallel([op.count()]) as (rank,):
            s = k.scalars(wide)
            difference = s.sub(code.read(1, wide, here, [(rank, step)]), largest)
            if kind is Normalization.LOG_SOFTMAX:
                share = s.sub(difference, scale)
            else:
                share = s.mul(k.value(math.ExpOp(difference)), scale)
            code.write(share, wide, 1, here, [(rank, step)])
    k.finish(op)


__all__ = ["normalize"]
