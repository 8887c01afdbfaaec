"""Convolutions of volumes as convolutions of images, whose channels are those of all slices that a window sees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import Operation, SSAValue

from mlirt.dialects.fused.access import AccessAttr, iteration
from mlirt.dialects.fused.contraction import ConvolutionOp
from mlirt.dialects.fused.fused_op import identity_region
from mlirt.dialects.fused.pad import PadOp
from mlirt.dialects.fused.pointwise import PointwiseOp
from mlirt.dialects.fused.view import ViewOp
from mlirt.dialects.symbolic import Dim, symbols
from mlirt.dialects.tensor_types import dims, element_of, rank, tensor
from mlirt.passes.layout.convolution_rewriting import DIRECT, kernel_of
from mlirt.passes.layout.volume_frames import frames_of_convolution, slices_as_rows
from mlirt.passes.rules import Match, Outcome, RulePass, rule


@dataclass(frozen=True)
class ExpandVolumeConvolutionPass(RulePass):
    """Rewrite rank-5 float32 convolutions with constant kernels as convolutions of images, which have fast kernels.

    Each slice of the result is an image; its input are the slices below the window, side by side as channels. A copy
    puts them there, and another one puts the images of the result behind each other and runs the epilogue.

    Before: `%y = fused.convolution %x, %k {..} : (1x8x6x5x5, 16x8x3x3x3) -> 1x16x4x3x3`
    After:

        %a = fused.pointwise %x {access = [["d0", "d2", "d1 + d3", "d4", "d5"]]} : 1x4x8x3x5x5
        %b = fused.view %a : 4x24x5x5
        %c = fused.convolution %b, %k' {..} : (4x24x5x5, 16x24x3x3) -> 4x16x3x3
        %y = fused.pointwise %c {access = [["4*d0 + d2", "d1", "d3", "d4"]]} : 1x16x4x3x3

    Windows of one slice of one volume are convolutions of slices, epilogue and all. A copy makes images of them, and a
    move puts the images of the result where rows of an image are slices, as the convolutions below read and write them.

    Before: `%y = fused.convolution %x, %k {..} : (1x8x6x5x5, 16x8x1x3x3) -> 1x16x6x3x3`
    After:

        %a = fused.view %x : 1x8x6x25
        %b = fused.pointwise %a {access = [["0", "d1", "d0", "5*d2 + d3"]]} : 6x8x5x5
        %c = fused.convolution %b, %k' {..} : (6x8x5x5, 16x8x3x3) -> 6x16x3x3
        %d = fused.view %c : 6x16x1x9
        %e = fused.pointwise %d {access = [["d2", "d1", "d0", "d3"]]} : 1x16x6x9
        %y = fused.view %e : 1x16x6x3x3

    Where windows have the length 1 along the last axis, and a step of 1 along both last ones, these are one: what was
    a step along the last but one is a dilation of whole rows. Then nothing is copied.

    Before: `%y = fused.convolution %x, %k {..} : (1x8x6x9x5, 16x8x3x3x1) -> 1x16x4x7x5`
    After:

        %a = fused.view %x : 1x8x6x45
        %b = fused.convolution %a, %k' {dilation = array<i64: 1, 5>, ..} : (1x8x6x45, 16x8x3x3) -> 1x16x4x35
        %y = fused.view %b : 1x16x4x7x5
    """

    name = "expand-volume-convolution"

    @rule(DIRECT)
    def expand(self, m: Match, convolution: ConvolutionOp, kernel: SSAValue) -> Outcome:
        if rank(convolution.output.type) != 5:
            return None
        array = m.array(kernel)
        for way in (_joined_axes, frames_of_convolution):
            if (made := way(m, convolution, kernel)) is not None:
                return made
        outputs, inputs, depth, *window = array.shape
        element, accumulator = element_of(convolution.input.type), convolution.epilogue.block.args[0].type
        batch, channels, _, *image = dims(convolution.input.type)
        _, _, slices, *positions = dims(convolution.output.type)
        flat = array.reshape(outputs, inputs * depth, *window)
        flat_kernel = kernel_of(m, kernel, flat, "of slices")
        (step, spread, before, after), *spatial = convolution.spatial()
        below = [iteration(0), iteration(2), iteration(1) * step + iteration(3) * spread, iteration(4), iteration(5)]
        padded = (
            convolution.input if before == after == 0 else m.insert(_padded(convolution.input, before, after)).output
        )
        gathered = m.insert(_copy(padded, below, [batch, slices, channels, depth, *image])).outputs[0]
        images = m.insert(ViewOp(gathered, tensor(element, [batch * slices, channels * depth, *image]))).output
        convolved = m.insert(
            ConvolutionOp(
                images,
                flat_kernel,
                tensor(accumulator, [batch * slices, outputs, *positions]),
                identity_region(accumulator),
                stride=[stride for stride, _, _, _ in spatial],
                dilation=[dilation for _, dilation, _, _ in spatial],
                pre_padding=[pre for _, _, pre, _ in spatial],
                post_padding=[post for _, _, _, post in spatial],
                groups=convolution.groups.value.data,
            )
        ).output
        behind = AccessAttr.of([iteration(0) * slices + iteration(2), *(iteration(axis) for axis in (1, 3, 4))])
        epilogue = convolution.detach_region(convolution.epilogue)
        return m.insert(
            PointwiseOp(
                [convolved, *convolution.extras], [behind, *convolution.access], [convolution.output.type], epilogue
            )
        )


_WHOLE_IMAGE, _WHOLE_VOLUME = (AccessAttr.of([iteration(axis) for axis in range(axes)]) for axes in (4, 5))


def _joined_axes(m: Match, convolution: ConvolutionOp, kernel: SSAValue) -> Operation | None:
    """The convolution of images whose rows are those of a slice behind each other; None where windows are no such."""
    width = dims(convolution.input.type)[-1]
    *kept, (step, spread, before, after), last = convolution.spatial()
    array = m.array(kernel)
    if array.shape[-1] != 1 or last != (1, last[1], 0, 0) or step != 1 or not isinstance(width, int):
        return None
    pairs = list(zip(convolution.extras, convolution.access, strict=True))
    if any(access != _WHOLE_VOLUME and _mentions_place(access) for _, access in pairs):
        return None
    extras = [m.insert(slices_as_rows(value)).output if access == _WHOLE_VOLUME else value for value, access in pairs]
    *shape, rows, columns = dims(convolution.output.type)
    image = ConvolutionOp(
        m.insert(slices_as_rows(convolution.input)).output,
        kernel_of(m, kernel, array.reshape(array.shape[:-1]), "of joined axes"),
        tensor(element_of(convolution.output.type), [*shape, rows * columns]),
        convolution.detach_region(convolution.epilogue),
        stride=[*(stride for stride, _, _, _ in kept), 1],
        dilation=[*(dilation for _, dilation, _, _ in kept), spread * width],
        pre_padding=[*(pre for _, _, pre, _ in kept), before * width],
        post_padding=[*(post for _, _, _, post in kept), after * width],
        groups=convolution.groups.value.data,
        padding_value=convolution.padding_value.value.data,
        extras=extras,
        access=[_WHOLE_IMAGE if access == _WHOLE_VOLUME else access for _, access in pairs],
    )
    return m.insert(ViewOp(m.insert(image).output, convolution.output.type))


def _mentions_place(access: AccessAttr) -> bool:
    """Whether it depends on the place in the volume, and not only on the batch and the channel."""
    return any({"d2", "d3", "d4"} & symbols(index) for index in access.indices())


def _copy(source: SSAValue, access: Sequence[Dim], shape: Sequence[Dim]) -> PointwiseOp:
    element = element_of(source.type)
    return PointwiseOp([source], [AccessAttr.of(access)], [tensor(element, shape)], identity_region(element))


def _padded(source: SSAValue, before: int, after: int) -> PadOp:
    """Slices of zeros in front and behind; negative numbers crop."""
    batch, channels, depth, *image = dims(source.type)
    shape = tensor(element_of(source.type), [batch, channels, depth + before + after, *image])
    return PadOp(source, [0, 0, before, 0, 0], shape)
