"""Convolutions of images with few channels on Hopper GPUs, for example of the pixels of a picture.

The input is copied first, so that all taps along a row of the window, with their channels, are neighbours in memory:
they count as the channels of a window one pixel wide, and neighbouring positions overlap.
"""

from __future__ import annotations

from collections.abc import Mapping

from mlirt.dialects.fused.contraction import ConvolutionOp
from mlirt.dialects.fused.epilogue import accumulator_type
from mlirt.dialects.tensor_types import rank
from mlirt.dialects.typical_sizes import typical, typical_values
from mlirt.kernels.convolution.cuda.group_convolution import (
    filters,
    images_of,
    is_within_reach,
    pads_with_zeros,
    pixels_of,
)
from mlirt.kernels.convolution.cuda.row_copy import RowCopy, kind_of_rows
from mlirt.kernels.lib.cuda.warpgroups.group_choice import GroupWork, estimates_of, tile_of
from mlirt.kernels.lib.cuda.warpgroups.group_product import GroupProduct
from mlirt.kernels.lib.cuda.warpgroups.group_sizes import GroupSizes
from mlirt.kernels.lib.cuda.warpgroups.group_tile import GroupTile
from mlirt.kernels.lib.cuda.warpgroups.planes import planes_cost
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
from mlirt.kernels.lib.cuda.warpgroups.sources import WindowSource
from mlirt.kernels.lib.tactics.lowering import Lowering

OPS = (ConvolutionOp,)
TARGETS = frozenset({"cuda"})
PRIORITY = 19

MIN_PIXELS = 64


def estimates(op: ConvolutionOp, lowering: Lowering) -> Mapping[str, float]:
    """Microseconds that the copy and the convolution take, about, with each tile."""
    kind = kind_of_rows(op, lowering)
    rows = None if kind is None else RowCopy.of(op, kind)
    if rows is None:
        return {}
    copying = copy_cost(rows, lowering) + planes_cost(op, lowering)
    return {name: cost + copying for name, cost in estimates_of(work(op, lowering)).items()}


def copy_cost(rows: RowCopy, lowering: Lowering) -> float:
    """Microseconds that the copy takes, about."""
    moves = lowering.target.gpu.moves
    return moves.launch + typical(rows.bytes, typical_values(lowering.block)) / moves.copied_bytes


def lower(op: ConvolutionOp, lowering: Lowering) -> bool:
    tile = tile_of(work(op, lowering), lowering.choice(op))
    if tile is None:
        return False
    _build(op, tile, lowering)
    return True


def work(op: ConvolutionOp, lowering: Lowering) -> GroupWork | None:
    """What there is to do; None where the tactic does not apply."""
    kind, weights = kind_of_rows(op, lowering), lowering.known(op.kernel)
    if (
        kind is None
        or weights is None
        or accumulator_type(op.epilogue) != kind.accumulator_type
        or not is_pointwise(op)
    ):
        return None
    plain = not op.transposed.value.data and op.groups.value.data == 1 and rank(op.input.type) in (4, 5)
    if not plain or not is_within_reach(op) or not pads_with_zeros(op) or images_of(op, lowering).fits():
        return None
    rows = RowCopy.of(op, kind)
    if rows is None or not rows.as_images(op, op.input).fits():
        return None
    pixels = typical(pixels_of(op), typical_values(lowering.block))
    if pixels < MIN_PIXELS:
        return None
    return GroupWork(
        pixels,
        weights.shape[0],
        1,
        steps(rows),
        True,
        extras=large_extras(op),
        operations=scalar_operations(op),
        width=result_width(op),
        ahead=bytes_ahead(op),
        line=rows.kind.line,
        device=lowering.target.gpu,
    )


def _build(op: ConvolutionOp, tile: GroupTile, lowering: Lowering) -> None:
    kind, weights = kind_of_rows(op, lowering), lowering.known(op.kernel)
    assert kind is not None
    assert weights is not None
    rows = RowCopy.of(op, kind)
    assert rows is not None
    buffer = lowering.placements.scratch(rows.bytes)
    rows.make(op, buffer, lowering)
    k, width = lowering.kernel("convolution"), width_of_results(op, tile, weights.shape[0])
    axes = range(2, rank(op.output.type))
    shape = ResultShape((), (0, *axes), (1,))
    epilogue = RowEpilogue(k, op, shape, lowering, width)
    left = WindowSource(k, rows.as_images(op, buffer), tile.rows, rows.window(op), rows.kind.line)
    right = filters(k, op.kernel, rows.packed, rows.kind, lowering, (tile.columns, width))
    sizes = GroupSizes(pixels_of(op), weights.shape[0], (), steps(rows))
    GroupProduct(k, tile, sizes, rows.kind, (left, right), epilogue).build(op)


def steps(rows: RowCopy) -> int:
    """Tiles along the depth."""
    return rows.line // rows.kind.depth * rows.lines
