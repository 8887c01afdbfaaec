"""Deconvolutions by two along rows on Hopper GPUs, from planes of channels to planes of channels.

Output position `y` is `s b + t`; those of a remainder `t` are a convolution at positions `b`. Channels and the two
remainders along the rows are rows of one product, those along other dimensions a batch; positions are its columns, read
as `cuda_wgmma_plane_columns` does. Neighbouring pixels of the result are two rows of a tile, which one thread has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import TYPE_CHECKING

from mlirt.dialects.fused.contraction import ConvolutionOp
from mlirt.dialects.fused.epilogue import accumulator_type
from mlirt.dialects.tensor_types import byte_width, dims
from mlirt.dialects.typical_sizes import typical, typical_values
from mlirt.kernels.convolution.cuda.wgmma import kind_of
from mlirt.kernels.convolution.cuda.wgmma_plane_columns import joined_dimensions, planes_of
from mlirt.kernels.convolution.cuda.wgmma_planes import has_planes, shape_of
from mlirt.kernels.lib.cuda.warpgroups.group_choice import GroupWork, estimates_of, tile_of
from mlirt.kernels.lib.cuda.warpgroups.group_product import GroupProduct
from mlirt.kernels.lib.cuda.warpgroups.group_sizes import GroupSizes
from mlirt.kernels.lib.cuda.warpgroups.group_tile import GroupTile
from mlirt.kernels.lib.cuda.warpgroups.kinds import Kind
from mlirt.kernels.lib.cuda.warpgroups.paired_results import PAIR, WIDTH, PairedResults
from mlirt.kernels.lib.cuda.warpgroups.plane_columns import PlaneSource
from mlirt.kernels.lib.cuda.warpgroups.plane_walk import GROUP, PlaneWalk
from mlirt.kernels.lib.cuda.warpgroups.planes import runs_cost
from mlirt.kernels.lib.cuda.warpgroups.row_epilogue import (
    RowEpilogue,
    is_pointwise,
    large_extras,
    result_width,
    scalar_operations,
)
from mlirt.kernels.lib.cuda.warpgroups.sources import MappedMemory, MatrixSource
from mlirt.kernels.lib.deconvolution_phases import (
    AlignedAxis,
    aligned_axes,
    aligned_kernels,
    undilated,
    undilated_windows,
)
from mlirt.kernels.lib.tactics.lowering import Lowering

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array

OPS = (ConvolutionOp,)
TARGETS = frozenset({"cuda"})
PRIORITY = 20

_HALF = 2  # bytes of elements that matrix units take by depth
_MIN_POSITIONS = 64


@dataclass(frozen=True)
class _Deconvolution:
    kind: Kind
    axes: Sequence[AlignedAxis]
    walk: PlaneWalk
    channels: int

    @property
    def rows(self) -> int:
        """Of the product: groups of channels, each with both remainders."""
        return -(-self.channels // GROUP) * WIDTH

    @property
    def entries(self) -> int:
        """Remainders along the dimensions in front."""
        return prod(axis.stride for axis in self.axes[:-1])


def estimates(op: ConvolutionOp, lowering: Lowering) -> Mapping[str, float]:
    """Microseconds that a deconvolution takes, about, with each tile."""
    found = _deconvolution(op, lowering)
    if found is None:
        return {}
    runs = runs_cost(op, lowering)
    return {name: cost + runs for name, cost in estimates_of(_work(op, found, lowering)).items()}


def lower(op: ConvolutionOp, lowering: Lowering) -> bool:
    found = _deconvolution(op, lowering)
    tile = None if found is None else tile_of(_work(op, found, lowering), lowering.choice(op))
    if found is None or tile is None or tile.split > 1 or tile.extra:
        return False
    _build(op, found, tile, lowering)
    return True


def _deconvolution(op: ConvolutionOp, lowering: Lowering) -> _Deconvolution | None:
    """What there is to do; None where the tactic does not apply."""
    kind, weights = kind_of(op, lowering), lowering.known(op.kernel)
    if not op.transposed.value.data or op.groups.value.data != 1 or kind is None or weights is None:
        return None
    if byte_width(kind.element) != _HALF or accumulator_type(op.epilogue) != kind.accumulator_type:
        return None
    if not is_pointwise(op) or op.spatial()[-1][0] != PAIR or not has_planes(op, lowering, least=_HALF):
        return None
    axes, joined = aligned_axes(op, undilated_windows(op, weights.shape[2:])), joined_dimensions(op, lowering)
    if axes is None or not joined:
        return None
    walk = PlaneWalk.of_remainders(axes, weights.shape[0], depth=kind.depth, joined=joined)
    if walk is None or walk.columns < _MIN_POSITIONS or not planes_of(op, walk, lowering).fits():
        return None
    return _Deconvolution(kind, axes, walk, weights.shape[1])


def _work(op: ConvolutionOp, found: _Deconvolution, lowering: Lowering) -> GroupWork:
    images = typical(dims(op.output.type)[0], typical_values(lowering.block))
    return GroupWork(
        found.rows,
        found.walk.columns,
        images * found.entries,
        found.walk.steps,
        may_split=False,
        piece=found.kind.depth,
        copies=found.walk.per_step,
        extras=large_extras(op),
        operations=scalar_operations(op),
        width=result_width(op),
        device=lowering.target.gpu,
    )


def _build(op: ConvolutionOp, found: _Deconvolution, tile: GroupTile, lowering: Lowering) -> None:
    kind, walk = found.kind, found.walk
    k = lowering.kernel("convolution")
    epilogue = RowEpilogue(k, op, shape_of(op), lowering, WIDTH, run=found.axes[-1].output)
    dilations = tuple(dilation for _, dilation, _, _ in op.spatial())
    packed = lowering.packed(op.kernel, partial(_packed, tuple(found.axes), walk, dilations))
    buffer, sizes = lowering.placements.new_weight(packed, "packed"), packed.array.shape
    memory = MappedMemory(buffer, kind.element, 0, sizes, (sizes[1] * sizes[2], sizes[2], 1))
    left = MatrixSource(k, memory, tile.rows, (1,), by_depth=False, known=True, line=kind.line)
    right = PlaneSource(k, planes_of(op, walk, lowering), tile.columns, walk)
    work = GroupSizes(found.rows, walk.columns, (dims(op.output.type)[0], found.entries), walk.steps)
    results = PairedResults(k, tile, epilogue, walk, found.axes, found.channels)
    GroupProduct(k, tile, work, kind, (left, right), epilogue, results=results).build(op)


def _packed(axes: Sequence[AlignedAxis], walk: PlaneWalk, dilations: Sequence[int], kernel: Array) -> Array:
    """`[remainders in front, groups of channels x remainder x channel, depth]`."""
    import numpy as np

    parts = aligned_kernels(undilated(kernel, dilations), axes)
    count, tail = kernel.shape[1], parts.shape[len(axes) + 1 :]
    parts = parts.reshape(-1, PAIR, count, *tail)
    whole = np.zeros((parts.shape[0], PAIR, -(-count // GROUP) * GROUP, *tail), kernel.dtype)
    whole[:, :, :count] = parts
    rows = whole.reshape(parts.shape[0], PAIR, -1, GROUP, *tail).swapaxes(1, 2)
    return walk.packed(rows.reshape(-1, *tail)).reshape(parts.shape[0], -1, walk.steps * walk.depth)
