"""Views and copies that only move channels become one gather of channels."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from mlirt.dialects.context import weights_of
from mlirt.dialects.fused.concat import ConcatOp
from mlirt.dialects.fused.contraction import ConvolutionOp
from mlirt.dialects.fused.gather import GatherOp
from mlirt.dialects.fused.pointwise import PointwiseOp
from mlirt.dialects.fused.resize import ResizeOp
from mlirt.dialects.fused.window import WindowOp
from mlirt.dialects.locations import fuse
from mlirt.dialects.regions import tensor_blocks
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.dialects.weights import WeightStore
from mlirt.passes.fusion.channel_moves import channels_of, is_move, moves_before
from mlirt.passes.remarks import applied, declined

_OF_IMAGES = (PointwiseOp, WindowOp, ConcatOp, ResizeOp, GatherOp)


@dataclass(frozen=True)
class FuseChannelShufflesPass(ModulePass):
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

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for block in tensor_blocks(op):
            _fuse(block, weights_of(ctx))


def _fuse(block: Block, store: WeightStore) -> None:
    convolved = _convolved(block)
    for op in list(block.ops):
        if op.parent is None or not is_move(op) or _goes_on(op):
            continue
        chain = moves_before(op)
        while chain and not _fuse_chain(chain, convolved, store):
            chain.pop()


def _goes_on(op: Operation) -> bool:
    """Whether the only reader of a move is one as well, with which it is looked at."""
    users = {use.operation for use in op.results[0].uses}
    return len(users) == 1 and all(is_move(user) and user.parent is op.parent for user in users)


def _convolved(block: Block) -> set[SSAValue]:
    """What convolutions give, also behind ops that keep the blocks of their operands."""
    found: set[SSAValue] = set()
    for op in block.ops:
        if isinstance(op, ConvolutionOp) or (
            isinstance(op, _OF_IMAGES) and any(value in found for value in op.operands)
        ):
            found.update(op.results)
    return found


def _fuse_chain(chain: list[Operation], convolved: set[SSAValue], store: WeightStore) -> bool:
    moved = channels_of(chain)
    if moved is None:
        return False
    source, channels = moved
    if channels == list(range(channels[0], channels[0] + len(channels))):
        return False
    last = chain[-1]
    if source not in convolved:
        declined(last, "the channels come from no convolution, so that they lie in no blocks")
        return False
    if len(set(channels)) < len(channels):
        declined(last, "a channel is taken twice")
        return False
    _replace(chain, source, channels, store)
    return True


def _replace(chain: list[Operation], source: SSAValue, channels: list[int], store: WeightStore) -> None:
    import numpy as np

    last, location = chain[-1], fuse(*chain)
    block = last.parent
    assert block is not None
    indices = ConstantOp.from_array(np.array(channels, np.int64), store, "channels", location)
    made = GatherOp(source, indices.output, last.results[0].type, axis=1)
    made.location = location
    block.insert_ops_before([indices, made], last)
    made.output.name_hint = last.results[0].name_hint
    last.results[0].replace_all_uses_with(made.output)
    applied(made)
    _erase_unread(reversed(chain))


def _erase_unread(ops: Iterable[Operation]) -> None:
    for op in ops:
        if op.results[0].first_use is not None:
            return
        op.detach()
        op.erase()
