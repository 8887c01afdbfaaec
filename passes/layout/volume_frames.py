"""Convolutions of the frames of a volume: slices as a batch of images, `[d, c, h, w]`, where windows have one slice."""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from mlirt.dialects.fused.access import AccessAttr, iteration
from mlirt.dialects.fused.contraction import ConvolutionOp
from mlirt.dialects.fused.fused_op import identity_region
from mlirt.dialects.fused.pointwise import PointwiseOp
from mlirt.dialects.fused.view import ViewOp
from mlirt.dialects.symbolic import Dim, floor_div, symbols
from mlirt.dialects.tensor_types import dims, element_of, tensor
from mlirt.passes.layout.convolution_rewriting import kernel_of
from mlirt.passes.rules import Match

_BATCH, _CHANNEL, _ROW, _PIXEL = (iteration(axis) for axis in range(4))
_WHOLE_IMAGE, _WHOLE_VOLUME = (AccessAttr.of([iteration(axis) for axis in range(axes)]) for axes in (4, 5))
_SLICES_AS_ROWS = AccessAttr.of([_ROW, _CHANNEL, _BATCH, _PIXEL])


def frames_of_convolution(m: Match, convolution: ConvolutionOp, kernel: SSAValue) -> Operation | None:
    """The volume that a convolution of its frames gives; None where windows are in several slices, and for more than
    one volume.

    To the ops around it a volume is an image whose rows are slices, `[1, c, d, h * w]`: frames are read from there, and
    written there.
    """
    (step, _, *pads), *spatial = convolution.spatial()
    array = m.array(kernel)
    batch, channels, depth, height, width = dims(convolution.input.type)
    _, results, slices, *image = dims(convolution.output.type)
    is_one = batch == 1 and array.shape[2] == 1 and not any(pads)
    if not is_one or not isinstance(width, int) or not isinstance(image[1], int):
        return None
    pairs = list(zip(convolution.extras, convolution.access, strict=True))
    if any(access != _WHOLE_VOLUME and _mentions_place(access) for _, access in pairs):
        return None
    count = floor_div(depth - 1, step) + 1
    source, element = m.insert(slices_as_rows(convolution.input)).output, element_of(convolution.input.type)
    frames_type = tensor(element, [count, channels, height, width])
    frames = m.insert(PointwiseOp([source], [_frames(width, step)], [frames_type], identity_region(element)))
    whole = [access == _WHOLE_VOLUME for _, access in pairs]
    made = ConvolutionOp(
        frames.outputs[0],
        kernel_of(m, kernel, array.reshape(*array.shape[:2], *array.shape[3:]), "of frames"),
        tensor(element_of(convolution.output.type), [slices, results, *image]),
        convolution.detach_region(convolution.epilogue),
        stride=[stride for stride, _, _, _ in spatial],
        dilation=[dilation for _, dilation, _, _ in spatial],
        pre_padding=[pre for _, _, pre, _ in spatial],
        post_padding=[post for _, _, _, post in spatial],
        groups=convolution.groups.value.data,
        padding_value=convolution.padding_value.value.data,
        extras=[
            m.insert(slices_as_rows(value)).output if is_whole else value
            for (value, _), is_whole in zip(pairs, whole, strict=True)
        ],
        access=[_frames(image[1]) if is_whole else access for (_, access), is_whole in zip(pairs, whole, strict=True)],
    )
    return _volume(m, m.insert(made).output, convolution)


def slices_as_rows(volume: SSAValue) -> ViewOp:
    """A volume whose last two axes are one."""
    *shape, length, width = dims(volume.type)
    return ViewOp(volume, tensor(element_of(volume.type), [*shape, length * width]))


def _frames(width: int, step: int = 1) -> AccessAttr:
    """Every `step`-th slice of a volume, whose slices are rows, as an image of `width` columns."""
    return AccessAttr.of([0, _CHANNEL, _BATCH * step, _ROW * width + _PIXEL])


def _volume(m: Match, frames: SSAValue, convolution: ConvolutionOp) -> Operation:
    """Images as the slices of the result of a convolution."""
    element, result = element_of(frames.type), convolution.output.type
    depth, channels, *image = dims(frames.type)
    pixels: Dim = image[0] * image[1]
    flat = m.insert(ViewOp(frames, tensor(element, [depth, channels, 1, pixels]))).output
    rows = tensor(element, [1, channels, depth, pixels])
    moved = m.insert(PointwiseOp([flat], [_SLICES_AS_ROWS], [rows], identity_region(element))).outputs[0]
    return m.insert(ViewOp(moved, result))


def _mentions_place(access: AccessAttr) -> bool:
    """Whether it depends on more than the channel."""
    return any({"d0", "d2", "d3", "d4"} & symbols(index) for index in access.indices())


__all__ = ["frames_of_convolution", "slices_as_rows"]
