"""Softmax: per row the largest element, the sum of exponentials, and then the elements with what follows them, all in
one launch.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Region

from mlirt.dialects.fused.scalar_builder import compute_type
from mlirt.dialects.fused.softmax import SoftmaxOp
from mlirt.dialects.tensor_types import dims, element_of, is_half
from mlirt.kernels.lib.epilogue import extra_operands, store_finished
from mlirt.kernels.lib.language import Index, Value, build, builder, kernel
from mlirt.kernels.lib.language.nest_words import NestOperand
from mlirt.kernels.lib.language.words import Box, exp, log, parallel
from mlirt.kernels.lib.loops.rows import rows, whole
from mlirt.kernels.lib.tactics.lowering import Lowering


def lower(op: SoftmaxOp, lowering: Lowering) -> bool:
    axis, element = op.axis.value.data, element_of(op.input.type)
    wide = compute_type(element)
    k = lowering.kernel("softmax")
    if k.is_cuda and is_half(element) and is_half(element_of(op.output.type)):
        k.function.attributes["close_functions"] = UnitAttr()  # far closer than results are rounded to
    space = dims(op.input.type)
    extras = extra_operands(op, lowering.placements)
    code, border = rows(k, space, axis, [whole(op.input, lowering), *extras, whole(op.output, lowering)])
    x, y = NestOperand(code, 0, wide), NestOperand(code, len(extras) + 1, wide)
    # On the CPU the exponentials are kept in the result where that is exact; threads of a block would have to wait.
    is_log = bool(op.log.value.data)
    keeps = not k.is_cuda and not is_log and element == wide == element_of(op.output.type)
    build(k, _softmax, x, y, border, op.epilogue, is_log=is_log, keeps=keeps)
    k.finish(op)
    return True


@kernel
def _softmax(
    x: NestOperand,
    y: NestOperand,
    border: int,
    epilogue: Region | None,
    *,
    is_log: bool,
    keeps: bool,
) -> None:
    """`for each row: y = exp(x - max(x)) / sum(exp(x - max(x)))`, or its logarithm, through the epilogue."""
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
        has_inverse = not is_log and (keeps or builder().is_cuda)
        logarithm = log(total) if is_log else total
        inverse = 1.0 / total if has_inverse else total
        for at in parallel(row):
            place = [*here, *at]
            if is_log:
                share = x[place] - largest - logarithm
            elif has_inverse:
                share = (y[place] if keeps else exponential(at)) * inverse
            else:
                share = exponential(at) / total
            if epilogue is None:
                y[place] = share
            else:
                store_finished(epilogue, x.code, 1, share, place)
