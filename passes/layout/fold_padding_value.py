"""Lets int8 convolutions pad with zeros, as GPUs copy windows, whatever their padding holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from xdsl.dialects import arith
from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, i32, i64
from xdsl.ir import SSAValue

from mlirt.dialects.context import weights_of
from mlirt.dialects.fused.access import AccessAttr, iteration
from mlirt.dialects.fused.contraction import ConvolutionOp
from mlirt.dialects.fused.epilogue import accumulator_type
from mlirt.dialects.tensor_types import channels_last, dims, memory_order, rank
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.passes.rules import Match, Outcome, RulePass, constant, op, rule, where

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array

_MAX_BYTES = 1 << 23  # of the sums of one convolution
NOT_ZERO = where(lambda number: number != 0, "a number other than 0")


@dataclass(frozen=True)
class FoldPaddingValuePass(RulePass):
    """Add what the cells of the padding contribute to a sum as a constant; then they may as well be zero.

    Only the sums at the border have such cells, but all get a number, which is the same for all images: for that the
    sizes of the images must be known. It concerns sums in int32 with known weights and channels that lie innermost:
    others find the value by themselves, cell by cell.

    Before:

        %y = fused.convolution %x, %w {padding_value = 7 : i64, ..} { ^bb0(%acc: i32): .. }

    After:

        %b = trt.constant {..} : tensor<8x8x16xi32>
        %y = fused.convolution %x, %w, %b {access = [["d2", "d3", "d1"]], ..} {
        ^bb0(%acc: i32, %0: i32):
          %1 = arith.addi %acc, %0 : i32
          ..
    """

    name = "fold-padding-value"

    @rule(
        op(ConvolutionOp, kernel=constant(), padding_value=NOT_ZERO, transposed=False, groups=1, pooling=None).named(
            "convolution"
        )
    )
    def fold(self, m: Match, convolution: ConvolutionOp) -> Outcome:
        kernel, image = convolution.kernel, convolution.output.type
        if accumulator_type(convolution.epilogue) != i32 or memory_order(image) != channels_last(rank(image)):
            return "its sums are no int32, or its channels do not lie innermost"
        if not all(isinstance(size, int) for size in (*dims(convolution.input.type)[2:], *dims(image)[1:])):
            return "the sizes of its images are not known"
        table = padding_sums(convolution, m.array(kernel))
        if table.nbytes > _MAX_BYTES and table.any():
            return f"its sums take {table.nbytes} bytes, more than {_MAX_BYTES}"
        if table.any():
            constant_ = ConstantOp.from_array(table, weights_of(m.ctx), "padding")
            _add(convolution, m.insert(constant_).output)
        convolution.padding_value = IntegerAttr(0, i64)
        return convolution


def padding_sums(op: ConvolutionOp, weights: Array) -> Array:
    """What the padding contributes to each sum: `[position.., output channel]`."""
    import numpy as np

    inside = weights.astype(np.int64).sum(1)
    total = inside.sum(tuple(range(1, inside.ndim)))
    spaces = zip(op.spatial(), dims(op.input.type)[2:], dims(op.output.type)[2:], inside.shape[1:], strict=True)
    for (stride, dilation, pre, _), length, positions, taps in spaces:
        assert isinstance(length, int)
        assert isinstance(positions, int)
        within = _inside(length, positions, taps, stride, dilation, pre)
        # The axis of the taps goes, that of the positions comes last.
        inside = np.tensordot(inside, within, ([1], [1]))
    outside = total.reshape(-1, *[1] * (inside.ndim - 1)) - inside
    return np.ascontiguousarray(np.moveaxis(outside * op.padding_value.value.data, 0, -1)).astype(np.int32)


def _inside(length: int, positions: int, taps: int, stride: int, dilation: int, pre: int) -> Array:
    """1 where a tap of a position lies in the input, else 0: `[position, tap]`."""
    import numpy as np

    cells = [[position * stride + tap * dilation - pre for tap in range(taps)] for position in range(positions)]
    return np.array([[0 <= cell < length for cell in row] for row in cells], np.int64)


def _add(convolution: ConvolutionOp, numbers: SSAValue) -> None:
    """Let the epilogue begin with the addition of an extra operand to the sums."""
    block = convolution.epilogue.block
    sums = block.args[0]
    first = block.first_op
    assert first is not None
    added = arith.AddiOp(sums, block.insert_arg(i32, len(block.args)))
    sums.replace_uses_with_if(added.result, lambda use: use.operation is not added)
    block.insert_op_before(added, first)
    axes = [*(iteration(axis) for axis in range(2, rank(convolution.output.type))), iteration(1)]
    convolution.operands = [*convolution.operands, numbers]
    convolution.access = ArrayAttr([*convolution.access, AccessAttr.of(axes)])
