"""Convolutions of volumes as convolutions of images, whose channels are those of all slices that a window sees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from mlirt.dialects.context import weights_of
from mlirt.dialects.fused.access import AccessAttr, iteration
from mlirt.dialects.fused.contraction import ConvolutionOp
from mlirt.dialects.fused.fused_op import identity_region
from mlirt.dialects.fused.pad import PadOp
from mlirt.dialects.fused.pointwise import PointwiseOp
from mlirt.dialects.fused.view import ViewOp
from mlirt.dialects.regions import tensor_blocks
from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_types import dims, element_of, tensor
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.dialects.weights import WeightStore
from mlirt.passes.layout.convolution_rewriting import in_front_of, is_direct, replace


@dataclass(frozen=True)
class ExpandVolumeConvolutionPass(ModulePass):
    """Rewrite rank-5 float32 convolutions with constant kernels as convolutions of images, which have fast kernels.

    Each slice of the result is an image; its input are the slices below the window, side by side as channels. A copy
    puts them there, and another one puts the images of the result behind each other and runs the epilogue.

    Before: `%y = fused.convolution %x, %k {..} : (1x8x6x5x5, 16x8x3x3x3) -> 1x16x4x3x3`
    After:

        %a = fused.pointwise %x {access = [["d0", "d2", "d1 + d3", "d4", "d5"]]} : 1x4x8x3x5x5
        %b = fused.view %a : 4x24x5x5
        %c = fused.convolution %b, %k' {..} : (4x24x5x5, 16x24x3x3) -> 4x16x3x3
        %d = fused.view %c : 1x4x16x3x3
        %y = fused.pointwise %d {access = [["d0", "d2", "d1", "d3", "d4"]]} : 1x16x4x3x3
    """

    name = "expand-volume-convolution"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        store = weights_of(ctx)
        for block in tensor_blocks(op):
            for inner in list(block.ops):
                if isinstance(inner, ConvolutionOp) and is_direct(inner, 5):
                    _expand(inner, store)


def _expand(op: ConvolutionOp, store: WeightStore) -> None:
    insert, owner = in_front_of(op), op.kernel.owner
    assert isinstance(owner, ConstantOp)
    array = owner.array(store)
    outputs, inputs, depth, *window = array.shape
    element, accumulator = element_of(op.input.type), op.epilogue.block.args[0].type
    batch, channels, _, *image = dims(op.input.type)
    _, _, slices, *positions = dims(op.output.type)
    flat = array.reshape(outputs, inputs * depth, *window)
    kernel = insert(ConstantOp.from_array(flat, store, f"{op.kernel.name_hint or 'kernel'} of slices"))
    (step, spread, before, after), *spatial = op.spatial()
    below = [iteration(0), iteration(2), iteration(1) * step + iteration(3) * spread, iteration(4), iteration(5)]
    padded = op.input if before == after == 0 else insert(_padded(op.input, before, after))
    gathered = insert(_copy(padded, below, [batch, slices, channels, depth, *image]))
    images = insert(ViewOp(gathered, tensor(element, [batch * slices, channels * depth, *image])))
    convolved = insert(
        ConvolutionOp(
            images,
            kernel,
            tensor(accumulator, [batch * slices, outputs, *positions]),
            identity_region(accumulator),
            stride=[stride for stride, _, _, _ in spatial],
            dilation=[dilation for _, dilation, _, _ in spatial],
            pre_padding=[pre for _, _, pre, _ in spatial],
            post_padding=[post for _, _, _, post in spatial],
            groups=op.groups.value.data,
        )
    )
    stacked = insert(ViewOp(convolved, tensor(accumulator, [batch, slices, outputs, *positions])))
    behind = AccessAttr.of([iteration(axis) for axis in (0, 2, 1, 3, 4)])
    epilogue = op.detach_region(op.epilogue)
    replace(op, insert(PointwiseOp([stacked, *op.extras], [behind, *op.access], [op.output.type], epilogue)))


def _copy(source: SSAValue, access: Sequence[Dim], shape: Sequence[Dim]) -> PointwiseOp:
    element = element_of(source.type)
    return PointwiseOp([source], [AccessAttr.of(access)], [tensor(element, shape)], identity_region(element))


def _padded(source: SSAValue, before: int, after: int) -> PadOp:
    """Slices of zeros in front and behind; negative numbers crop."""
    batch, channels, depth, *image = dims(source.type)
    shape = tensor(element_of(source.type), [batch, channels, depth + before + after, *image])
    return PadOp(source, [0, 0, before, 0, 0], shape)
