"""Convolutions on Hopper GPUs with all weights of a tile in shared memory, and pixels that its windows share.

Pixels are copied once, as boxes; the matrix unit finds those of each position of the window some lines further in the
same box (`warpgroups/pixel_boxes.py`). Where a window is a pixel, tiles are parts of one long row of pixels.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from mlirt.dialects.fused.contraction import ConvolutionOp
from mlirt.dialects.fused.epilogue import accumulator_type
from mlirt.dialects.symbolic import Dim, product
from mlirt.dialects.tensor_types import dims, rank
from mlirt.kernels.convolution.cuda.box_convolution import MEASURED, BoxConvolution
from mlirt.kernels.convolution.cuda.group_convolution import images_of, is_matrix, kind_of_lines, pads_with_zeros
from mlirt.kernels.lib.cuda.warpgroups.row_epilogue import is_pointwise
from mlirt.kernels.lib.tactics.lowering import Lowering

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array

OPS = (ConvolutionOp,)
TARGETS = frozenset({"cuda"})
PRIORITY = 20

_MIN_CHANNELS = 8  # of the result


def estimates(op: ConvolutionOp, lowering: Lowering) -> Mapping[str, float]:
    """Microseconds that a convolution takes, about, with each tile."""
    problem = _problem(op, lowering)
    return {} if problem is None else problem.estimates()


def lower(op: ConvolutionOp, lowering: Lowering) -> bool:
    problem = _problem(op, lowering)
    tile = problem.tile(lowering.choice(op)) if problem is not None else None
    if problem is None or tile is None:
        return False
    problem.build(tile, problem.images.buffer)
    return True


def _problem(op: ConvolutionOp, lowering: Lowering) -> BoxConvolution | None:
    """What there is to do; None where the tactic does not apply."""
    kind, weights = kind_of_lines(op, lowering), lowering.known(op.kernel)
    if (
        kind is None
        or weights is None
        or accumulator_type(op.epilogue) != kind.accumulator_type
        or not is_pointwise(op)
    ):
        return None
    if kind.mma not in MEASURED:
        return None
    if op.transposed.value.data or op.groups.value.data != 1 or not pads_with_zeros(op) or rank(op.input.type) != 4:
        return None
    images, taps = images_of(op, lowering), weights.shape[2:]
    batch, _, height, width = dims(op.output.type)
    pixels: tuple[Dim, Dim, Dim] = (batch, height, width)
    if not images.fits() or weights.shape[0] < _MIN_CHANNELS:
        return None
    if is_matrix(op, images):
        count, step = product(images.sizes[:-1]), images.steps[-2]
        images = replace(images, sizes=(1, 1, count, images.sizes[-1]), steps=(count * step, count * step, step, 1))
        pixels = (1, 1, count)
    elif taps == (1, 1):
        return None
    sizes = weights.shape[0], weights.shape[1]
    return BoxConvolution(op, kind, images, tuple(op.spatial()), taps, pixels, sizes, _as_stored, lowering)


def _as_stored(weights: Array) -> Array:
    return weights
