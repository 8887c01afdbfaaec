"""Fuses an activation into the epilogue of the convolution before it."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from mlirt.dialects.fused.pointwise import PointwiseOp
from mlirt.dialects.regions import tensor_blocks
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.passes.fusion.epilogues import Accumulating, epilogue_obstacle, extras_of, take_epilogue
from mlirt.passes.remarks import declined, missed


@dataclass(frozen=True)
class FuseConvolutionActivationPass(ModulePass):
    """Make a pointwise op the epilogue of the convolution, product, window or reduction whose result only it reads.

    Besides the result it may read constants, for example one value per channel. Reads of anything else are left to
    fuse-convolution-elementwise, as the convolution may have to move for them.

    Before:

        %c = fused.convolution %x, %w { acc } : tensor<1x4x8x8xf32>
        %y = fused.pointwise %c { max(c, 0) } : tensor<1x4x8x8xf32>

    After:

        %y = fused.convolution %x, %w { max(acc, 0) } : tensor<1x4x8x8xf32>
    """

    name = "fuse-convolution-activation"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for block in tensor_blocks(op):
            for inner in list(block.ops):
                if isinstance(inner, PointwiseOp):
                    _fuse(inner)


def _fuse(consumer: PointwiseOp) -> None:
    for value in dict.fromkeys(consumer.inputs):
        producer = value.owner
        if not isinstance(producer, Accumulating):
            continue
        reason = epilogue_obstacle(consumer, producer)
        if reason is not None:
            declined(consumer, reason, producer)
            continue
        others = extras_of(consumer, value)
        if all(isinstance(other.owner, ConstantOp) for other, _ in others):
            take_epilogue(producer, consumer)
        else:
            declined(consumer, "it reads other tensors too, which is left to fuse-convolution-elementwise")
        return
    if not any(isinstance(value.owner, Accumulating) for value in consumer.inputs):
        missed(consumer, "it reads no result of a convolution, product, window or reduction")
