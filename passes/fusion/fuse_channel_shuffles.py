"""Views and copies that only move channels become one gather of channels."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.ir import Block, Operation, SSAValue

from mlirt.dialects.context import weights_of
from mlirt.dialects.fused.concat import ConcatOp
from mlirt.dialects.fused.contraction import ConvolutionOp
from mlirt.dialects.fused.gather import GatherOp
from mlirt.dialects.fused.pointwise import PointwiseOp
from mlirt.dialects.fused.resize import ResizeOp
from mlirt.dialects.fused.view import ViewOp
from mlirt.dialects.fused.window import WindowOp
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.passes.fusion.channel_moves import channels_of, is_move, moves_before
from mlirt.passes.rules import Match, Outcome, RulePass, op, rule

_OF_IMAGES = (PointwiseOp, WindowOp, ConcatOp, ResizeOp, GatherOp)


@dataclass(frozen=True)
class FuseChannelShufflesPass(RulePass):
    """Gather channels once, where views and transposing copies have put them into another order.

    The image comes from convolutions, perhaps by way of poolings and elementwise work, so that its channels may lie in
    blocks; batch, height and width stay what they are, each channel is taken at most once. Slices of neighbouring
    channels stay copies.

    Before:

        %v = fused.view %x : (tensor<1x6x8x8xf32>) -> tensor<1x2x3x8x8xf32>
        %t = fused.pointwise %v ["d0", "d2", "d1", "d3", "d4"] { v } : tensor<1x3x2x8x8xf32>
        %y = fused.view %t : (tensor<1x3x2x8x8xf32>) -> tensor<1x6x8x8xf32>

    After:

        %i = trt.constant {value = dense<[0, 3, 1, 4, 2, 5]> : tensor<6xi64>} : tensor<6xi64>
        %y = fused.gather %x, %i {axis = 1 : i64} : (tensor<1x6x8x8xf32>, tensor<6xi64>) -> tensor<1x6x8x8xf32>
    """

    name = "fuse-channel-shuffles"

    again = False  # a chain is looked at as a whole

    @rule(op(ViewOp | PointwiseOp).named("last"))
    def gather(self, m: Match, ctx: Context, last: ViewOp | PointwiseOp) -> Outcome:
        import numpy as np

        if not is_move(last) or _goes_on(last):
            return None
        chain, obstacle = moves_before(last), None
        while chain:
            moved = _selected(chain, m.analysis(_convolved))
            if isinstance(moved, tuple):
                source, channels = moved
                m.replaces(chain[-1])
                m.drop(*chain[:-1])
                array = np.array(channels, np.int64)
                indices = m.insert(ConstantOp.from_array(array, weights_of(ctx), "channels"), *chain)
                return m.insert(GatherOp(source, indices.output, chain[-1].results[0].type, axis=1), *chain)
            obstacle = obstacle or moved
            chain.pop()
        return obstacle


def _goes_on(op: Operation) -> bool:
    """Whether the only reader of a move is one as well, with which it is looked at."""
    users = {use.operation for use in op.results[0].uses}
    return len(users) == 1 and all(is_move(user) and user.parent is op.parent for user in users)


def _convolved(block: Block) -> set[SSAValue]:
    """What convolutions give, also behind ops that keep the blocks of their operands."""
    found: set[SSAValue] = set()
    for one in block.ops:
        if isinstance(one, ConvolutionOp) or (
            isinstance(one, _OF_IMAGES) and any(value in found for value in one.operands)
        ):
            found.update(one.results)
    return found


def _selected(chain: list[Operation], convolved: set[SSAValue]) -> tuple[SSAValue, list[int]] | str | None:
    """The image of which a chain of moves selects channels, and those channels; or why they are not gathered."""
    moved = channels_of(chain)
    if moved is None:
        return None
    source, channels = moved
    if channels == list(range(channels[0], channels[0] + len(channels))):
        return None
    if source not in convolved:
        return "the channels come from no convolution, so that they lie in no blocks"
    return moved if len(set(channels)) == len(channels) else "a channel is taken twice"
