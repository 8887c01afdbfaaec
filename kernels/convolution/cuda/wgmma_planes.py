"""Convolutions on Hopper GPUs whose results are planes of channels: output channels are rows, pixels columns.

The operands of `cuda_wgmma` the other way round: weights are the left matrix and im2col tiles, which TMA copies, the
right one, so that a thread has neighbouring pixels of a channel. The input has its channels innermost; the results are
written as rows of planes by the same launch, which no copy to another order has to follow.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from xdsl.ir import SSAValue

from mlirt.dialects.fused.contraction import ConvolutionOp
from mlirt.dialects.symbolic import Dim, product
from mlirt.dialects.tensor_types import byte_width, dims, element_of, rank
from mlirt.dialects.typical_sizes import typical, typical_values
from mlirt.kernels.convolution.cuda import group_convolution
from mlirt.kernels.lib.builder.kernel_builder import KernelBuilder
from mlirt.kernels.lib.builder.placement import Pack
from mlirt.kernels.lib.cuda.tiles.alignment import is_multiple
from mlirt.kernels.lib.cuda.warpgroups.group_choice import GroupWork, estimates_of, tile_of
from mlirt.kernels.lib.cuda.warpgroups.group_product import GroupProduct
from mlirt.kernels.lib.cuda.warpgroups.group_sizes import GroupSizes
from mlirt.kernels.lib.cuda.warpgroups.group_tile import GroupTile
from mlirt.kernels.lib.cuda.warpgroups.kinds import Kind
from mlirt.kernels.lib.cuda.warpgroups.row_epilogue import ResultShape, RowEpilogue, is_joined
from mlirt.kernels.lib.cuda.warpgroups.sources import MappedMemory, MatrixSource, Source
from mlirt.kernels.lib.tactics.lowering import Lowering

OPS = (ConvolutionOp,)
TARGETS = frozenset({"cuda"})
PRIORITY = 20

_MIN_PIECE = 4  # bytes of an access that planes are aligned for


def estimates(op: ConvolutionOp, lowering: Lowering) -> Mapping[str, float]:
    """Microseconds that a convolution takes, about, with each tile."""
    return estimates_of(_work(op, lowering))


def lower(op: ConvolutionOp, lowering: Lowering) -> bool:
    tile = tile_of(_work(op, lowering), lowering.choice(op))
    if tile is None:
        return False
    _build(op, tile, lowering)
    return True


def _work(op: ConvolutionOp, lowering: Lowering) -> GroupWork | None:
    """That of `cuda_wgmma`, transposed: each image is a product of its own, whose columns are its pixels."""
    work = group_convolution.work(op, lowering)
    if work is None or op.groups.value.data != 1 or not has_planes(op, lowering):
        return None
    batch, pixels = (typical(one, typical_values(lowering.block)) for one in images_and_pixels(op))
    return replace(work, rows=work.columns, columns=pixels, batch=batch, ahead=0)


def images_and_pixels(op: ConvolutionOp) -> tuple[Dim, Dim]:
    """The images of the result, and the pixels of each."""
    batch, _, *spatial = dims(op.output.type)
    return batch, product(spatial)


def shape_of(op: ConvolutionOp) -> ResultShape:
    """Each image a product of its own, with channels as rows and pixels as columns."""
    return ResultShape((0,), (1,), tuple(range(2, rank(op.output.type))))


def has_planes(op: ConvolutionOp, lowering: Lowering) -> bool:
    """Whether the pixels of a channel are neighbours, and begin where several can be accessed at once."""
    steps, width = lowering.placements[op.output].strides, byte_width(element_of(op.output.type))
    _, pixels = images_and_pixels(op)
    starts = [lowering.placements[op.output].offset, steps[0] * width, steps[1] * width, pixels * width]
    aligned = all(is_multiple(one, _MIN_PIECE) for one in starts)
    is_planar = aligned and steps[-1] == 1 and steps[1] != 1 and isinstance(pixels, int)
    return is_planar and is_joined(op, shape_of(op), lowering)


def _build(op: ConvolutionOp, tile: GroupTile, lowering: Lowering) -> None:
    kind, weights = group_convolution.kind_of_lines(op, lowering), lowering.known(op.kernel)
    assert kind is not None
    assert weights is not None
    k = lowering.kernel("convolution")
    epilogue = RowEpilogue(k, op, shape_of(op), lowering)
    left = channels(k, op.kernel, partial(group_convolution.packed_by_taps, kind.depth), tile.rows, kind, lowering)
    right = _pixels(k, op, group_convolution.images_of(op, lowering), tile.columns, kind)
    batch, pixels = images_and_pixels(op)
    sizes = GroupSizes(weights.shape[0], pixels, (batch,), group_convolution.depth_steps(weights.shape, kind))
    GroupProduct(k, tile, sizes, kind, (left, right), epilogue).build(op)


def channels(k: KernelBuilder, kernel: SSAValue, pack: Pack, rows: int, kind: Kind, lowering: Lowering) -> Source:
    """Weights, which `pack` brings to `[output channel, depth]`, as rows: so many of a tile."""
    packed = lowering.packed(kernel, pack)
    buffer, shape = lowering.placements.new_weight(packed, "packed"), packed.array.shape
    memory = MappedMemory(buffer, kind.element, 0, shape, (shape[-1], 1))
    return MatrixSource(k, memory, rows, (), by_depth=False, known=True, line=kind.line)


def _pixels(k: KernelBuilder, op: ConvolutionOp, images: MappedMemory, columns: int, kind: Kind) -> Source:
    """The windows of an image's pixels."""
    if not group_convolution.is_matrix(op, images):
        return group_convolution.window_rows(k, op, images, columns, kind)
    sizes, steps = images.sizes, images.steps
    matrices = replace(images, sizes=(sizes[0], product(sizes[1:-1]), sizes[-1]), steps=(steps[0], *steps[-2:]))
    return MatrixSource(k, matrices, columns, (0,), by_depth=False, known=False, line=kind.line)
