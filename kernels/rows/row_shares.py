"""What was found of rows becomes what softmax makes of it, in a kernel of its own behind the one that finds it.

for each row:
  the sum of the exponentials of all its elements
  of each element that was found: its exponential, divided by the sum; or its logarithm
"""

from __future__ import annotations

from mlirt.dialects.fused.scalar_builder import compute_type
from mlirt.dialects.fused.topk import Normalization, TopkOp
from mlirt.dialects.tensor_types import dims, element_of
from mlirt.kernels.lib.language import build, builder, kernel
from mlirt.kernels.lib.language.nest_words import NestOperand
from mlirt.kernels.lib.language.words import Box, exp, log, parallel
from mlirt.kernels.lib.loops.loop_nest import NestCode
from mlirt.kernels.lib.loops.rows import rows, whole, without_axis
from mlirt.kernels.lib.tactics.lowering import Lowering


def normalize(op: TopkOp, lowering: Lowering) -> None:
    """Launch the kernel where an op normalises."""
    if op.normalization_kind() is None:
        return
    axis = op.axis.value.data
    k = lowering.kernel("shares")
    operands = [whole(op.input, lowering), without_axis(whole(op.values, lowering), axis)]
    build(k, _shares, *rows(k, dims(op.input.type), axis, operands), op)
    k.finish(op)


@kernel
def _shares(code: NestCode, border: int, op: TopkOp) -> None:
    wide, is_log = compute_type(element_of(op.input.type)), op.normalization_kind() is Normalization.LOG_SOFTMAX
    x, values = NestOperand(code, 0, wide), NestOperand(code, 1, wide)
    (outer, (length,)), step = code.split(border), builder().strides(op.values)[op.axis.value.data]
    # On a GPU other threads may have replaced it by then.
    is_first = op.sorted.value.data and not builder().is_cuda
    for loops in parallel(outer):
        here = code.loops_before(border, loops)
        largest = values[here] if is_first else max(x[*here, i] for i in Box(length))
        total = sum(exp(x[*here, i] - largest) for i in Box(length))
        scale = log(total) if is_log else 1.0 / total
        for rank in parallel(op.count()):
            found = values.moved([(rank, step)])
            difference = found[here] - largest
            found[here] = difference - scale if is_log else exp(difference) * scale


__all__ = ["normalize"]
