"""Lets int8 convolutions pad with zeros, as GPUs copy windows, whatever their padding holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, ModuleOp, i32, i64
from xdsl.passes import ModulePass

from mlirt.dialects.context import weights_of
from mlirt.dialects.fused.access import AccessAttr, iteration
from mlirt.dialects.fused.contraction import ConvolutionOp
from mlirt.dialects.fused.epilogue import accumulator_type
from mlirt.dialects.tensor_types import channels_last, dims, memory_order, rank
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.dialects.weights import WeightStore

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array

_MAX_BYTES = 1 << 23  # of the sums of one convolution


@dataclass(frozen=True)
class FoldPaddingValuePass(ModulePass):
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

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        store = weights_of(ctx)
        for inner in list(op.walk()):
            if isinstance(inner, ConvolutionOp) and inner.padding_value.value.data:
                _fold(inner, store)


def _fold(op: ConvolutionOp, store: WeightStore) -> None:
    owner, region = op.kernel.owner, op.epilogue
    if not isinstance(owner, ConstantOp) or accumulator_type(region) != i32 or op.transposed.value.data:
        return
    if op.groups.value.data != 1 or op.pooling is not None:
        return
    if memory_order(op.output.type) != channels_last(rank(op.output.type)):
        return
    sizes = [size for size in (*dims(op.input.type)[2:], *dims(op.output.type)[1:]) if isinstance(size, int)]
    if len(sizes) < 2 * (rank(op.input.type) - 2) + 1:
        return
    table = padding_sums(op, owner.array(store))
    if not table.any():
        op.padding_value = IntegerAttr(0, i64)
    elif table.nbytes <= _MAX_BYTES:
        _add(op, table, store)


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


def _add(op: ConvolutionOp, table: Array, store: WeightStore) -> None:
    block, owner = op.epilogue.block, op.kernel.owner
    assert isinstance(owner, ConstantOp)
    constant = ConstantOp.from_array(table, store, "padding", op.location)
    parent = owner.parent
    assert parent is not None
    parent.insert_op_after(constant, owner)
    sums = block.args[0]
    first = block.first_op
    assert first is not None
    added = arith.AddiOp(sums, block.insert_arg(i32, len(block.args)))
    sums.replace_uses_with_if(added.result, lambda use: use.operation is not added)
    block.insert_op_before(added, first)
    access = AccessAttr.of([*(iteration(axis) for axis in range(2, rank(op.output.type))), iteration(1)])
    op.operands = [*op.operands, constant.output]
    op.access = ArrayAttr([*op.access, access])
    op.padding_value = IntegerAttr(0, i64)
