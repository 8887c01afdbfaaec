"""Fuses an activation into the epilogue of the convolution before it."""

from __future__ import annotations

from dataclasses import dataclass

from mlirt.dialects.fused.pointwise import PointwiseOp
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.passes.fusion.epilogues import FUSIBLE, Accumulating, epilogue_obstacle, extras_of, with_epilogue
from mlirt.passes.rules import Match, Outcome, RulePass, rule


@dataclass(frozen=True)
class FuseConvolutionActivationPass(RulePass):
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

    @rule(FUSIBLE)
    def fuse(self, m: Match, consumer: PointwiseOp, producer: Accumulating) -> Outcome:
        if (reason := epilogue_obstacle(consumer, producer)) is not None:
            return reason
        if not all(isinstance(other.owner, ConstantOp) for other, _ in extras_of(consumer, producer.results[0])):
            return "it reads other tensors too, which is left to fuse-convolution-elementwise"
        return m.insert(with_epilogue(producer, consumer))
