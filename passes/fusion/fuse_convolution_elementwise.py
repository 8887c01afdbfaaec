"""Fuses an elementwise op, such as a residual addition, into the epilogue of a convolution."""

from __future__ import annotations

from dataclasses import dataclass

from mlirt.dialects.fused.pointwise import PointwiseOp
from mlirt.passes.fusion.epilogues import (
    FUSIBLE,
    Accumulating,
    epilogue_obstacle,
    extras_of,
    reads_in_place,
    with_epilogue,
)
from mlirt.passes.options import option
from mlirt.passes.rules import Match, Outcome, RulePass, rule


@dataclass(frozen=True)
class FuseConvolutionElementwisePass(RulePass):
    """Make a pointwise op that also reads other tensors the epilogue of the convolution or product before it.

    The fused op stands where the pointwise op stood, so that every extra operand exists. Of two convolutions whose
    results are added the later one takes the addition. Extra operands are read element by element or broadcast, never
    transposed, and there are at most `max-extras` of them.

    Before:

        %c = fused.convolution %x, %w { acc } : tensor<1x4x8x8xf32>
        %r = ...
        %y = fused.pointwise %c, %r { max(c + r, 0) } : tensor<1x4x8x8xf32>

    After:

        %r = ...
        %y = fused.convolution %x, %w, %r { max(acc + r, 0) } : tensor<1x4x8x8xf32>
    """

    name = "fuse-convolution-elementwise"

    max_extras: int = option(6, at_least=0)

    @rule(FUSIBLE)
    def fuse(self, m: Match, consumer: PointwiseOp, producer: Accumulating) -> Outcome:
        if (reason := self._obstacle(consumer, producer)) is not None:
            return reason
        others = [one for value in consumer.inputs if isinstance(one := value.owner, Accumulating)]
        if any(m.place(one) > m.place(producer) and self._obstacle(consumer, one) is None for one in others):
            return "a later one takes it"
        return m.insert(with_epilogue(producer, consumer))

    def _obstacle(self, consumer: PointwiseOp, producer: Accumulating) -> str | None:
        """Why a pointwise op cannot end the op that computes what it reads; None where it can."""
        others = extras_of(consumer, producer.results[0])
        count = len(producer.extras) + len(others)
        if (reason := epilogue_obstacle(consumer, producer)) is not None:
            return reason
        if count > self.max_extras:
            return f"{{producer}} would have {count} extra operands, more than {self.max_extras}"
        in_place = all(reads_in_place(access) for _, access in others)
        return None if in_place else "another operand is transposed or sliced"
