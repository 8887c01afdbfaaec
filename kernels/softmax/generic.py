"""Softmax: per row the largest element, the sum of exponentials, and then the elements, all in one launch."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import UnitAttr

from mlirt.dialects.fused.scalar_builder import compute_type
from mlirt.dialects.fused.softmax import SoftmaxOp
from mlirt.dialects.tensor_types import dims, element_of, is_half
from mlirt.kernels.lib.language import Index, Value, build, builder, kernel
from mlirt.kernels.lib.language.nest_words import NestOperand
from mlirt.kernels.lib.language.words import Box, exp, log, parallel
from mlirt.kernels.lib.loops.rows import rows, whole
from mlirt.kernels.lib.tactics.lowering import Lowering

OPS = (SoftmaxOp,)
TARGETS = frozenset({"cpu", "cuda"})
PRIORITY = 0


def lower(op: SoftmaxOp, lowering: Lowering) -> bool:
    axis, element = op.axis.value.data, element_of(op.input.type)
    wide = compute_type(element)
    k = lowering.kernel("softmax")
    if k.is_cuda and is_half(element):
        k.function.attributes["close_functions"] = UnitAttr()  # far closer than results are rounded to
    code, border = rows(k, dims(op.input.type), axis, [whole(op.input, lowering), whole(op.output, lowering)])
    x, y = (NestOperand(code, number, wide) for number in (0, 1))
    # On the CPU the exponentials are kept in the result where that is exact; threads of a block would have to wait.
    is_log = bool(op.log.value.data)
    build(k, _softmax, x, y, border, is_log=is_log, keeps=not k.is_cuda and not is_log and element == wide)
    k.finish(op)
    return True


@kernel
def _softmax(x: NestOperand, y: NestOperand, border: int, *, is_log: bool, keeps: bool) -> None:
    """`for each row: y = exp(x - max(x)) / sum(exp(x - max(x)))`, or its logarithm."""
    extents, row = x.code.split(border)
    for loops in parallel(extents):
        here = x.code.loops_before(border, loops)
        largest = max(x[*here, *at] for at in Box(row))

        def exponential(at: Sequence[Index]) -> Value:
            return exp(x[*here, *at] - largest)

        def summand(at: Sequence[Index]) -> Value:
            value = exponential(at)
            if keeps:
                y[*here, *at] = value
            return value

        total = sum(summand(at) for at in Box(row))
        if is_log:
            logarithm = log(total)
            for at in parallel(row):
                y[*here, *at] = x[*here, *at] - largest - logarithm
        elif keeps or builder().is_cuda:
            inverse = 1.0 / total
            for at in parallel(row):
                y[*here, *at] = (y[*here, *at] if keeps else exponential(at)) * inverse
        else:
            for at in parallel(row):
                y[*here, *at] = exponential(at) / total
