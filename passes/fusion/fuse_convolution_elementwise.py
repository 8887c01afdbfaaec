"""Fuses an elementwise op, such as a residual addition, into the epilogue of a convolution."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from mlirt.dialects.fused.pointwise import PointwiseOp
from mlirt.dialects.regions import tensor_blocks
from mlirt.passes.fusion.epilogues import Accumulating, epilogue_obstacle, extras_of, reads_in_place, take_epilogue
from mlirt.passes.options import option
from mlirt.passes.remarks import declined, missed


@dataclass(frozen=True)
class FuseConvolutionElementwisePass(ModulePass):
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

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for block in tensor_blocks(op):
            inside = list(block.ops)
            order = {inner: place for place, inner in enumerate(inside)}
            for inner in inside:
                if isinstance(inner, PointwiseOp):
                    self._fuse(inner, order)

    def _fuse(self, consumer: PointwiseOp, order: dict[Operation, int]) -> None:
        owners = [value.owner for value in dict.fromkeys(consumer.inputs)]
        found = [owner for owner in owners if isinstance(owner, Accumulating)]
        reasons = {one: epilogue_obstacle(consumer, one) for one in found}
        for producer in sorted((one for one in found if reasons[one] is None), key=lambda one: -order[one]):
            others = extras_of(consumer, producer.results[0])
            count = len(producer.extras) + len(others)
            if count > self.max_extras:
                reasons[producer] = f"{{}} would have {count} extra operands, more than {self.max_extras}"
            elif not all(reads_in_place(access) for _, access in others):
                reasons[producer] = "another operand is transposed or sliced"
            else:
                order[take_epilogue(producer, consumer)] = order[consumer]
                return
        for producer, reason in reasons.items():
            declined(consumer, reason or "", producer)
        if not reasons:
            missed(consumer, "it reads no result of a convolution, product, window or reduction")
