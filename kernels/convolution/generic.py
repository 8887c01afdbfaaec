"""Convolution and deconvolution as a direct sum, for any rank, groups, dilation, layout and pooling: the one that
always works.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Attribute

from mlirt.dialects.fused.contraction import ConvolutionOp
from mlirt.dialects.fused.epilogue import accumulator_type
from mlirt.dialects.kernel.core import ReduceKind
from mlirt.dialects.tensor_types import dims, rank
from mlirt.kernels.convolution.pooled_results import Pooled
from mlirt.kernels.lib.epilogue import extra_operands, finished
from mlirt.kernels.lib.language import Value, build, kernel, value_of
from mlirt.kernels.lib.language.nest_words import masked
from mlirt.kernels.lib.language.words import Box, constant, narrowed, parallel, reduction, widened
from mlirt.kernels.lib.loops.loop_nest import Nest, NestCode
from mlirt.kernels.lib.loops.rows import whole
from mlirt.kernels.lib.nests.convolution_operands import ConvolutionOperands
from mlirt.kernels.lib.tactics.lowering import Lowering

OPS = (ConvolutionOp,)
TARGETS = frozenset({"cpu", "cuda"})
PRIORITY = 0
POOLS = ADDS_UP = True


def lower(op: ConvolutionOp, lowering: Lowering) -> bool:
    k = lowering.kernel("convolution")
    pooled = Pooled(op, extra_operands(op, lowering.placements))
    code = NestCode(k, Nest.of(dims(op.output.type), [*pooled.operands, whole(op.output, lowering)]).ordered(-1))
    build(k, _convolution, op, code, ConvolutionOperands(k, op), pooled, accumulator_type(op.epilogue))
    k.finish(op)
    return True


@kernel
def _convolution(
    op: ConvolutionOp, code: NestCode, source: ConvolutionOperands, pooled: Pooled, accumulator: Attribute
) -> None:
    """`for each n, k, p..: reduce over c and the taps { x * w where inside }; epilogue; store`.

    Padding that is not zero takes part in the sum. With pooling there is a loop over the places of a window around the
    sum and its epilogue.
    """
    padding, extras = op.padding_value.value.data, len(op.extras)
    zero, outside = constant(0, accumulator), constant(padding, accumulator)
    for here in parallel(code.extents()):
        loops = [value_of(code.original(axis, here)) for axis in range(rank(op.output.type))]
        channel, exists = source.channel(loops)
        first = source.group(channel)[0]

        def result(position: Sequence[Value], within: Sequence[Value]) -> Value:
            starts = source.starts(position)

            def product(at: Sequence[Value]) -> Value:
                depth, *taps = at
                cells, inside = source.cells(starts, taps)
                value = zero
                if exists and (padding or inside):
                    left = outside
                    if inside or not padding:
                        left = widened(source.pixel(loops[0], first + depth, cells), accumulator)
                    right = widened(source.weight(first, depth, channel, taps), accumulator)
                    value = narrowed(left * right, accumulator, accumulator)
                return value

            over = Box([source.depth, *[axis.taps for axis in source.axes]])
            total = reduction(ReduceKind.ADD, over, zero, product)
            more = [pooled.within(number, within) for number in range(extras)]
            scalars = [code.load(number, here, moved) for number, moved in enumerate(more)]
            return finished(op.epilogue, total, scalars, len(position), lambda axis: position[axis])

        value = pooled.over_windows(loops, result)
        code.store(masked(value, op.output.type, lambda axis: loops[axis]), extras, here)
