"""Convolutions as implicit GEMM by a matrix unit, whose im2col tiles are copied by TMA.

Pixels are rows of the product, output channels its columns; the depth goes tap by tap, in each along the channels,
which are neighbours in memory. Groups are a batch of products that read other channels of the same pixels.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import prod
from typing import TYPE_CHECKING

from xdsl.ir import SSAValue

from mlirt.dialects.fused.contraction import ConvolutionOp
from mlirt.dialects.fused.epilogue import accumulator_type
from mlirt.dialects.fused.scalar_builder import scalar_type
from mlirt.dialects.layout import arranged
from mlirt.dialects.symbolic import Dim, product
from mlirt.dialects.tensor_types import byte_width, dims, element_of, rank
from mlirt.dialects.typical_sizes import typical, typical_values
from mlirt.kernels.lib.builder.kernel_builder import KernelBuilder
from mlirt.kernels.lib.builder.placement import Pack
from mlirt.kernels.lib.cuda.warpgroups.group_choice import GroupWork
from mlirt.kernels.lib.cuda.warpgroups.group_sizes import GroupSizes
from mlirt.kernels.lib.cuda.warpgroups.group_tile import GroupTile
from mlirt.kernels.lib.cuda.warpgroups.group_unit import HOPPER, GroupUnit
from mlirt.kernels.lib.cuda.warpgroups.kinds import Kind
from mlirt.kernels.lib.cuda.warpgroups.packing import in_fragment_order
from mlirt.kernels.lib.cuda.warpgroups.row_epilogue import (
    ResultShape,
    RowEpilogue,
    bytes_ahead,
    is_pointwise,
    large_extras,
    result_width,
    scalar_operations,
    width_of_results,
)
from mlirt.kernels.lib.cuda.warpgroups.sources import MappedMemory, MatrixSource, Source, WindowShape, WindowSource
from mlirt.kernels.lib.tactics.lowering import Lowering

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array

_MIN_CHANNELS = 8  # of the result of a group; more groups are merged where there are less
_MIN_PIXELS = 4  # with less, a warp per result reads the weights in order
_MAX_STRIDE = 8
# How far corners and taps may lie from a pixel, by the number of spatial dimensions.
_REACH = {1: 1 << 15, 2: 1 << 7, 3: 1 << 4}


def work(op: ConvolutionOp, lowering: Lowering, unit: GroupUnit = HOPPER) -> GroupWork | None:
    """What there is to do; None where the tactic does not apply."""
    kind, weights = kind_of_lines(op, lowering, unit), lowering.known(op.kernel)
    if (
        kind is None
        or weights is None
        or accumulator_type(op.epilogue) != kind.accumulator_type
        or not is_pointwise(op)
    ):
        return None
    groups = op.groups.value.data
    if op.transposed.value.data or is_depthwise(op) or not is_within_reach(op) or not pads_with_zeros(op):
        return None
    if not images_of(op, lowering).fits():
        return None
    columns, known = weights.shape[0] // groups, typical_values(lowering.block)
    pixels = typical(pixels_of(op), known)
    if (columns < _MIN_CHANNELS and groups > 1) or pixels <= _MIN_PIXELS:
        return None
    return GroupWork(
        pixels,
        columns,
        groups,
        depth_steps(weights.shape, kind),
        may_split=True,
        extras=large_extras(op),
        operations=scalar_operations(op),
        width=result_width(op),
        ahead=bytes_ahead(op),
        line=kind.line,
        device=lowering.target.gpu,
    )


def kind_of(op: ConvolutionOp, lowering: Lowering, unit: GroupUnit = HOPPER) -> Kind | None:
    """What matrix units do with the elements; None where they have no such operation."""
    return Kind.of(element_of(op.input.type), element_of(op.kernel.type), lowering.target, unit.instruction)


def kind_of_lines(op: ConvolutionOp, lowering: Lowering, unit: GroupUnit = HOPPER) -> Kind | None:
    """The same with lines that the channels of a tap fill best."""
    kind, channels = kind_of(op, lowering, unit), dims(op.kernel.type)[0 if op.transposed.value.data else 1]
    return None if kind is None or not isinstance(channels, int) else kind.fitting(channels * byte_width(kind.element))


def pads_with_zeros(op: ConvolutionOp) -> bool:
    """Whether cells outside of the input count as zero, as the device fills them in."""
    return op.padding_value.value.data == 0 or all(pre <= 0 and post <= 0 for _, _, pre, post in op.spatial())


def pixels_of(op: ConvolutionOp) -> Dim:
    """Of all images of the result."""
    batch, _, *spatial = dims(op.output.type)
    return batch * product(spatial)


def depth_steps(sizes: Sequence[int], kind: Kind) -> int:
    """Tiles along the depth."""
    _, channels, *taps = sizes
    count = -(-channels // kind.depth)
    for length in taps:
        count *= length
    return count


def is_depthwise(op: ConvolutionOp) -> bool:
    """Whether each channel is convolved alone, which is no product of matrices."""
    return op.groups.value.data > 1 and dims(op.kernel.type)[1] == 1


def is_within_reach(op: ConvolutionOp) -> bool:
    """Whether a window's walk can be described to the device."""
    return reaches(op.spatial(), dims(op.kernel.type)[2:])


def reaches(spatial: Sequence[tuple[int, int, int, int]], window: Sequence[Dim]) -> bool:
    """The same of a window with these strides, dilations and paddings in front and behind, one of each dimension."""
    reach = _REACH.get(len(window), 0)
    for (stride, dilation, pre, post), taps in zip(spatial, window, strict=True):
        if not isinstance(taps, int):
            return False
        far = (taps - 1) * dilation
        if stride > _MAX_STRIDE or far >= 2 * reach or not -reach < -pre < reach or not -reach < post - far < reach:
            return False
    return True


def images_of(op: ConvolutionOp, lowering: Lowering) -> MappedMemory:
    """The input with its channels innermost."""
    place, sizes = lowering.placements[op.input], dims(op.input.type)
    axes = (0, *range(2, len(sizes)), 1)
    steps = tuple(place.strides[axis] for axis in axes)
    element = scalar_type(element_of(op.input.type))
    return MappedMemory(place.buffer, element, place.offset, tuple(sizes[axis] for axis in axes), steps)


def is_matrix(op: ConvolutionOp, images: MappedMemory) -> bool:
    """Whether the pixels of the input are the rows of a matrix as they lie, and those of the result."""
    alone = all(size == 1 for size in dims(op.kernel.type)[2:])
    stays = all((stride, pre, post) == (1, 0, 0) for stride, _, pre, post in op.spatial())
    joined = all(
        images.steps[axis] == images.steps[axis + 1] * images.sizes[axis + 1] for axis in range(len(images.sizes) - 2)
    )
    return alone and stays and joined


def build_convolution(op: ConvolutionOp, tile: GroupTile, lowering: Lowering, unit: GroupUnit) -> None:
    """The kernel and its launch before `op`."""
    kind, weights = kind_of_lines(op, lowering, unit), lowering.known(op.kernel)
    assert kind is not None
    assert weights is not None
    groups = op.groups.value.data
    columns = weights.shape[0] // groups
    k, width = lowering.kernel("convolution"), width_of_results(op, tile, columns)
    axes = range(2, rank(op.output.type))
    shape = ResultShape((), (0, *axes), (1,), groups)
    epilogue = RowEpilogue(k, op, shape, lowering, width)
    images = images_of(op, lowering)
    left = _pixel_rows(k, op, images, tile.rows, kind)
    pack = partial(packed_by_taps, kind.depth, groups=groups)
    right = filters(k, op.kernel, pack, kind, lowering, (tile.columns, width))
    batch = (groups,) if groups > 1 else ()
    sizes = GroupSizes(pixels_of(op), columns, batch, depth_steps(weights.shape, kind), shares_rows=groups > 1)
    unit.product(k, tile, sizes, kind, (left, right), epilogue).build(op)


def _pixel_rows(k: KernelBuilder, op: ConvolutionOp, images: MappedMemory, rows: int, kind: Kind) -> Source:
    if is_matrix(op, images) and op.groups.value.data == 1:
        pixels = product(images.sizes[:-1])
        matrix = MappedMemory(
            images.buffer, images.element, images.offset, (pixels, images.sizes[-1]), images.steps[-2:]
        )
        return MatrixSource(k, matrix, rows, (), by_depth=False, known=False, line=kind.line)
    return window_rows(k, op, images, rows, kind)


def window_rows(k: KernelBuilder, op: ConvolutionOp, images: MappedMemory, rows: int, kind: Kind) -> WindowSource:
    """The windows of so many pixels at a time."""
    stride, dilation, pre, post = zip(*op.spatial(), strict=True)
    taps = tuple(size for size in dims(op.kernel.type)[2:] if isinstance(size, int))
    channels, by_group = images.sizes[-1], op.groups.value.data > 1
    assert isinstance(channels, int)
    channels //= op.groups.value.data
    shape = WindowShape(taps, stride, dilation, pre, post, dims(op.output.type)[2:], channels, by_group)
    return WindowSource(k, images, rows, shape, kind.line)


def filters(
    k: KernelBuilder, kernel: SSAValue, pack: Pack, kind: Kind, lowering: Lowering, columns: tuple[int, int]
) -> MatrixSource:
    """Weights, which `pack` brings to `[output channel, depth]`, as columns: so many of a tile, and neighbours of a
    thread. A dimension in front of these is an entry of the batch.
    """
    ordered = lowering.packed(kernel, partial(_in_fragment_order, pack, columns[1]))
    buffer, shape = lowering.placements.new_weight(ordered, "packed"), ordered.array.shape
    steps = tuple(prod(shape[axis + 1 :]) for axis in range(len(shape)))
    batch = tuple(range(len(shape) - 2))
    memory = MappedMemory(buffer, kind.element, 0, shape, steps)
    return MatrixSource(
        k, memory, columns[0], batch, by_depth=False, known=True, in_fragment_order=True, line=kind.line
    )


def _in_fragment_order(pack: Pack, width: int, weights: Array) -> Array:
    return in_fragment_order(pack(weights), width)


def packed_by_taps(depth: int, weights: Array, groups: int = 1) -> Array:
    """`[output channel, taps and channels]`, the channels of each tap filled up with zeros to whole tiles; with
    several groups these are the first dimension.
    """

    count, channels = weights.shape[:2]
    lines = arranged(weights.reshape(count, channels, -1), "n (s d) t", "n (t s d)", d=depth)
    return lines if groups == 1 else lines.reshape(groups, count // groups, -1)
