"""Convolutions of images with few channels on Hopper GPUs whose results are planes of channels.

The copy of `cuda_wgmma_rows`, whose lines hold the taps of a row side by side, and the product of `cuda_wgmma_planes`:
output channels are rows and pixels columns, so that runs of a plane are written and no copy to another order follows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from mlirt.dialects.fused.contraction import ConvolutionOp
from mlirt.dialects.typical_sizes import typical, typical_values
from mlirt.kernels.convolution.cuda import wgmma_rows
from mlirt.kernels.convolution.cuda.row_copy import RowCopy, kind_of_rows
from mlirt.kernels.convolution.cuda.wgmma_planes import channels, has_planes, images_and_pixels, shape_of
from mlirt.kernels.lib.cuda.warpgroups.group_choice import GroupWork, estimates_of, tile_of
from mlirt.kernels.lib.cuda.warpgroups.group_product import GroupProduct
from mlirt.kernels.lib.cuda.warpgroups.group_sizes import GroupSizes
from mlirt.kernels.lib.cuda.warpgroups.group_tile import GroupTile
from mlirt.kernels.lib.cuda.warpgroups.planes import runs_cost
from mlirt.kernels.lib.cuda.warpgroups.row_epilogue import RowEpilogue
from mlirt.kernels.lib.cuda.warpgroups.sources import WindowSource
from mlirt.kernels.lib.tactics.lowering import Lowering

OPS = (ConvolutionOp,)
TARGETS = frozenset({"cuda"})
PRIORITY = 19

_SLOWER = 1.8  # times as long as their estimates: two products with channels as rows, into planes, on an H200


def estimates(op: ConvolutionOp, lowering: Lowering) -> Mapping[str, float]:
    """Microseconds that the copy and the convolution take, about, with each tile."""
    kind, work = kind_of_rows(op, lowering), _work(op, lowering)
    rows = None if kind is None or work is None else RowCopy.of(op, kind)
    if rows is None:
        return {}
    copying = wgmma_rows.copy_cost(rows, lowering) + runs_cost(op, lowering)
    return {name: _SLOWER * cost + copying for name, cost in estimates_of(work).items()}


def lower(op: ConvolutionOp, lowering: Lowering) -> bool:
    tile = tile_of(_work(op, lowering), lowering.choice(op))
    if tile is None:
        return False
    _build(op, tile, lowering)
    return True


def _work(op: ConvolutionOp, lowering: Lowering) -> GroupWork | None:
    """That of `cuda_wgmma_rows`, transposed: each image is a product of its own, whose columns are its pixels."""
    work = wgmma_rows.work(op, lowering)
    if work is None or not has_planes(op, lowering):
        return None
    batch, pixels = (typical(one, typical_values(lowering.block)) for one in images_and_pixels(op))
    return replace(work, rows=work.columns, columns=pixels, batch=batch, ahead=0)


def _build(op: ConvolutionOp, tile: GroupTile, lowering: Lowering) -> None:
    kind, weights = kind_of_rows(op, lowering), lowering.known(op.kernel)
    assert kind is not None
    assert weights is not None
    rows = RowCopy.of(op, kind)
    assert rows is not None
    buffer = lowering.placements.scratch(rows.bytes)
    rows.make(op, buffer, lowering)
    k = lowering.kernel("convolution")
    epilogue = RowEpilogue(k, op, shape_of(op), lowering)
    left = channels(k, op.kernel, rows.packed, tile.rows, rows.kind, lowering)
    right = WindowSource(k, rows.as_images(op, buffer), tile.columns, rows.window(op), rows.kind.line)
    batch, pixels = images_and_pixels(op)
    sizes = GroupSizes(weights.shape[0], pixels, (batch,), wgmma_rows.steps(rows))
    GroupProduct(k, tile, sizes, rows.kind, (left, right), epilogue).build(op)
