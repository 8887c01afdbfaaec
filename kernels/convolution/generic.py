"""Convolution and deconvolution as a direct sum, for any rank, groups, dilation, layout and pooling: the one that
always works.
"""

from __future__ import annotations

from xdsl.ir import SSAValue

from mlirt.dialects.fused.contraction import ConvolutionOp
from mlirt.dialects.kernel.core import ReduceKind
from mlirt.dialects.tensor_types import dims, element_of
from mlirt.kernels.convolution.pooled_results import Pooled
from mlirt.kernels.lib.loops.block_lanes import LaneMask, number
from mlirt.kernels.lib.loops.convolution_operands import ConvolutionOperands
from mlirt.kernels.lib.loops.loop_nest import Nest, NestCode, affine
from mlirt.kernels.lib.loops.reduction_nest import accumulator_of
from mlirt.kernels.lib.loops.rows import whole
from mlirt.kernels.lib.tactics.lowering import Lowering

OPS = (ConvolutionOp,)
TARGETS = frozenset({"cpu", "cuda"})
PRIORITY = 0
POOLS = True


def lower(op: ConvolutionOp, lowering: Lowering) -> bool:
    """`parallel (n, k, p..) { reduce (c, taps) { x * w where inside }; epilogue; store }`; padding that is not zero
    takes part in the sum. With pooling there is a loop over the places of a window around the sum and its epilogue.
    """
    space, places = dims(op.output.type), lowering.placements
    accumulator = accumulator_of(op.epilogue)
    k = lowering.kernel("convolution")
    extras = [affine(value, places[value], one, len(space)) for value, one in zip(op.extras, op.access, strict=True)]
    pooled = Pooled(k, op, extras)
    code = NestCode(k, Nest.of(space, [*pooled.operands, whole(op.output, lowering)]).ordered(-1))
    source, padding = ConvolutionOperands(k, op), op.padding_value.value.data
    zero = number(k, 0, accumulator)
    outside = number(k, padding, accumulator)
    with k.parallel(code.extents()) as here:
        loops = [code.original(axis, here) for axis in range(len(space))]
        channel, exists = source.channel(loops)
        first, _ = source.group(channel)

        def result(position: list[SSAValue], within: list[SSAValue]) -> SSAValue:
            starts = source.starts(position)

            def element(at: list[SSAValue]) -> SSAValue:
                depth, taps = at[0], at[1:]
                cells, inside = source.cells(starts, taps)

                def pixel() -> SSAValue:
                    value = k.ready(source.pixel(loops[0], k.add(first, depth), cells))
                    return k.scalars(accumulator).cast(value, element_of(op.input.type))

                def product() -> SSAValue:
                    left = k.guarded(inside, pixel, outside) if padding else pixel()
                    wide, weight = k.scalars(accumulator), k.ready(source.weight(first, depth, channel, taps))
                    right = wide.cast(weight, element_of(op.kernel.type))
                    return k.typed(wide.mul(left, right), accumulator)

                return k.guarded(exists if padding else k.both(exists, inside), product, zero)

            total = k.reduce(ReduceKind.ADD, [source.depth, *(axis.taps for axis in source.axes)], zero, element)
            more = [pooled.within(number, within) for number in range(len(extras))]
            scalars = [total, *(code.load(number, here, moved) for number, moved in enumerate(more))]
            return k.inline(op.epilogue, scalars, position)[0]

        value = pooled.over_windows(loops, result)
        mask = LaneMask(k, op.output.type, lambda axis: loops[axis])
        code.store(mask.apply(value), len(extras), here)
    k.finish(op)
    return True
