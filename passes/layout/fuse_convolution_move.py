"""Fuses a move of whole vectors into the convolution before it, which writes its result in that order."""

from __future__ import annotations

from dataclasses import dataclass

from mlirt.dialects.blocked_layout import is_blocked
from mlirt.dialects.fused.contraction import ConvolutionOp
from mlirt.dialects.fused.moves import is_written_through, permutation, write_through
from mlirt.dialects.fused.pointwise import PointwiseOp
from mlirt.dialects.fused.view import ViewOp
from mlirt.dialects.tensor_types import halo
from mlirt.passes.rules import Match, Outcome, RulePass, op, rule


@dataclass(frozen=True)
class FuseConvolutionMovePass(RulePass):
    """Let a convolution in blocks of channels write its result where a move puts it, where nobody else reads it.

    The move, perhaps of other rows of the same pixels, gives the dimensions another order, but for the last one, the
    channels of a block: what the convolution writes are whole vectors in any order. The move is marked
    `fused.written_through`, and becomes no launch.

    Before:

        %c = fused.convolution %x, %w : tensor<8x2x5x7x16xf32, ..>
        %y = fused.pointwise %c {access = [["d2", "d1", "d0", "d3", "d4"]]} : tensor<5x2x8x7x16xf32, ..>

    After:

        %c = fused.convolution %x, %w : tensor<8x2x5x7x16xf32, ..>
        %y = fused.pointwise %c {access = [["d2", "d1", "d0", "d3", "d4"]], fused.written_through} : ..
    """

    name = "fuse-convolution-move"

    @rule(op(PointwiseOp, op(ConvolutionOp).named("convolution")).named("move"))
    def fuse(self, m: Match, move: PointwiseOp, convolution: ConvolutionOp) -> Outcome:
        return _fused(m, move, convolution)

    @rule(op(PointwiseOp, op(ViewOp, op(ConvolutionOp).named("convolution"))).named("move"))
    def fuse_behind_view(self, m: Match, move: PointwiseOp, convolution: ConvolutionOp) -> Outcome:
        return _fused(m, move, convolution)


def _fused(m: Match, move: PointwiseOp, convolution: ConvolutionOp) -> Outcome:
    axes, source, result = permutation(move), move.inputs[0], move.outputs[0]
    if is_written_through(move) or axes is None:
        return None
    if axes[-1] != len(axes) - 1 or not is_blocked(source.type) or not is_blocked(result.type):
        return "it takes vectors apart"
    if any(halo(value.type) or not value.has_one_use() for value in {source, convolution.output}):
        return "{convolution} has other readers"
    write_through(move)
    m.note = "{convolution} writes its result there"
    return move


__all__ = ["FuseConvolutionMovePass"]
