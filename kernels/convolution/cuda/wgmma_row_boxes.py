"""Convolutions of images with few channels on Hopper GPUs: a copy with the taps of a row side by side, then boxes.

The copy is that of `cuda_wgmma_rows`. What its lines hold serves all windows that reach over them: a tile's lines are
copied to shared memory once, as in `cuda_wgmma_boxes`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from xdsl.ir import SSAValue

from mlirt.dialects.fused.contraction import ConvolutionOp
from mlirt.dialects.fused.epilogue import accumulator_type
from mlirt.dialects.tensor_types import dims, rank
from mlirt.dialects.typical_sizes import typical, typical_values
from mlirt.kernels.convolution.cuda.box_convolution import MEASURED, BoxConvolution
from mlirt.kernels.convolution.cuda.group_convolution import images_of, pads_with_zeros, pixels_of
from mlirt.kernels.convolution.cuda.row_copy import RowCopy, kind_of_rows
from mlirt.kernels.convolution.cuda.wgmma_rows import MIN_PIXELS, copy_cost
from mlirt.kernels.lib.cuda.warpgroups.row_epilogue import is_pointwise
from mlirt.kernels.lib.tactics.lowering import Lowering

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array

OPS = (ConvolutionOp,)
TARGETS = frozenset({"cuda"})
PRIORITY = 19


def estimates(op: ConvolutionOp, lowering: Lowering) -> Mapping[str, float]:
    """Microseconds that the copy and the convolution take, about, with each tile."""
    rows = _rows(op, lowering)
    if rows is None:
        return {}
    copying = copy_cost(rows, lowering)
    return {name: cost + copying for name, cost in _problem(op, rows, op.input, lowering).estimates().items()}


def lower(op: ConvolutionOp, lowering: Lowering) -> bool:
    rows = _rows(op, lowering)
    if rows is None:
        return False
    problem = _problem(op, rows, op.input, lowering)
    tile = problem.tile(lowering.choice(op))
    if tile is None:
        return False
    buffer = lowering.placements.scratch(rows.bytes)
    rows.make(op, buffer, lowering)
    problem.build(tile, buffer)
    return True


def _rows(op: ConvolutionOp, lowering: Lowering) -> RowCopy | None:
    """The copy; None where the tactic does not apply."""
    kind, weights = kind_of_rows(op, lowering), lowering.known(op.kernel)
    if (
        kind is None
        or weights is None
        or accumulator_type(op.epilogue) != kind.accumulator_type
        or not is_pointwise(op)
    ):
        return None
    if kind.mma not in MEASURED:
        return None
    plain = not op.transposed.value.data and op.groups.value.data == 1 and rank(op.input.type) == 4
    if not plain or not pads_with_zeros(op) or images_of(op, lowering).fits():
        return None
    rows = RowCopy.of(op, kind)
    if rows is None or not rows.as_images(op, op.input).fits():
        return None
    return rows if typical(pixels_of(op), typical_values(lowering.block)) >= MIN_PIXELS else None


def _problem(op: ConvolutionOp, rows: RowCopy, buffer: SSAValue, lowering: Lowering) -> BoxConvolution:
    """The convolution of the copy: a line of it counts as the channels of a pixel."""
    window, weights = rows.window(op), lowering.known(op.kernel)
    assert weights is not None
    spatial = tuple(zip(window.stride, window.dilation, window.pre, window.post, strict=True))
    sizes = weights.shape[0], rows.line
    batch, _, height, width = dims(op.output.type)
    images = rows.as_images(op, buffer)
    return BoxConvolution(
        op,
        rows.kind,
        images,
        spatial,
        window.kernel,
        (batch, height, width),
        sizes,
        partial(_lines, rows, window.kernel),
        lowering,
    )


def _lines(rows: RowCopy, window: tuple[int, ...], weights: Array) -> Array:
    """`[output channel, place in a line, *window]`."""
    return rows.packed(weights).reshape(weights.shape[0], *window, rows.line).transpose(0, 3, 1, 2)
