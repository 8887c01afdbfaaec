"""Convolutions on Hopper GPUs from planes of channels to planes of channels: nothing is laid out anew around them.

Output channels are rows of the product, as in `cuda_wgmma_planes`, and pixels columns; but the input is read as it
lies in planes, by copies of lines of pixels for some channels, whose matrix has the depth as its slower dimension. Few
channels leave room for several taps in a step.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from mlirt.dialects.fused.contraction import ConvolutionOp
from mlirt.dialects.fused.epilogue import accumulator_type
from mlirt.dialects.fused.scalar_builder import scalar_type
from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_types import byte_width, dims, element_of
from mlirt.dialects.typical_sizes import typical, typical_values
from mlirt.kernels.convolution.cuda.wgmma import kind_of, pads_with_zeros
from mlirt.kernels.convolution.cuda.wgmma_planes import channels, has_planes, shape_of
from mlirt.kernels.lib.cuda.warpgroups.group_choice import GroupWork, estimates_of, tile_of
from mlirt.kernels.lib.cuda.warpgroups.group_product import GroupProduct
from mlirt.kernels.lib.cuda.warpgroups.group_sizes import GroupSizes
from mlirt.kernels.lib.cuda.warpgroups.group_tile import GroupTile
from mlirt.kernels.lib.cuda.warpgroups.kinds import Kind
from mlirt.kernels.lib.cuda.warpgroups.plane_columns import PlaneColumns, PlaneSource
from mlirt.kernels.lib.cuda.warpgroups.plane_walk import PlaneWalk
from mlirt.kernels.lib.cuda.warpgroups.planes import runs_cost
from mlirt.kernels.lib.cuda.warpgroups.row_epilogue import (
    RowEpilogue,
    is_pointwise,
    large_extras,
    result_width,
    scalar_operations,
)
from mlirt.kernels.lib.cuda.warpgroups.sources import MappedMemory
from mlirt.kernels.lib.tactics.lowering import Lowering

OPS = (ConvolutionOp,)
TARGETS = frozenset({"cuda"})
PRIORITY = 20

_HALF = 2  # bytes of elements that matrix units take by depth
_MIN_PIXELS = 64


def estimates(op: ConvolutionOp, lowering: Lowering) -> Mapping[str, float]:
    """Microseconds that a convolution takes, about, with each tile."""
    found = estimates_of(_work(op, lowering))
    runs = runs_cost(op, lowering) if found else 0.0
    return {name: cost + runs for name, cost in found.items()}


def lower(op: ConvolutionOp, lowering: Lowering) -> bool:
    tile = tile_of(_work(op, lowering), lowering.choice(op))
    if tile is None:
        return False
    _build(op, tile, lowering)
    return True


def _kind(op: ConvolutionOp, lowering: Lowering) -> Kind | None:
    kind = kind_of(op, lowering)
    return kind if kind is not None and byte_width(kind.element) == _HALF else None


def _work(op: ConvolutionOp, lowering: Lowering) -> GroupWork | None:
    """Each image is a product of its own; None where the tactic does not apply."""
    kind, weights = _kind(op, lowering), lowering.known(op.kernel)
    if kind is None or weights is None or accumulator_type(op.epilogue) != kind.accumulator_type:
        return None
    if op.transposed.value.data or op.groups.value.data != 1 or not is_pointwise(op) or not pads_with_zeros(op):
        return None
    walk = _walk(op, kind, lowering)
    if walk is None or not _planes(op, walk, lowering).fits() or not has_planes(op, lowering, least=_HALF):
        return None
    if walk.columns < _MIN_PIXELS:
        return None
    return GroupWork(
        weights.shape[0],
        walk.columns,
        typical(dims(op.output.type)[0], typical_values(lowering.block)),
        walk.steps,
        may_split=True,
        piece=kind.depth,
        copies=walk.per_step,
        extras=large_extras(op),
        operations=scalar_operations(op),
        width=result_width(op),
        device=lowering.target.gpu,
    )


def _walk(op: ConvolutionOp, kind: Kind, lowering: Lowering) -> PlaneWalk | None:
    """How the window walks; None where sizes are not known or lines are no neighbours."""
    steps = lowering.placements[op.input].strides
    count, *sizes = _numbers(dims(op.input.type)[1:]) or (0,)
    made, taps = (_numbers(dims(one.type)[2:]) for one in (op.output, op.kernel))
    if not sizes or made is None or taps is None or steps[-1] != 1:
        return None
    joined, pitch = 1, sizes[-1]
    while joined < len(sizes) and steps[-1 - joined] == pitch:
        joined += 1
        pitch *= sizes[-joined]
    return PlaneWalk.of(sizes, made, taps, op.spatial(), count, depth=kind.depth, joined=joined)


def _numbers(sizes: tuple[Dim, ...]) -> tuple[int, ...] | None:
    """Lengths, where all are known."""
    known = tuple(one for one in sizes if isinstance(one, int))
    return known if len(known) == len(sizes) else None


def _planes(op: ConvolutionOp, walk: PlaneWalk, lowering: Lowering) -> MappedMemory:
    """The input as image, dimensions in front, stacked taps if there are any, channels, positions.

    What lies behind the last position of a window's first tap is left out of the dimension that has stacked taps.
    """
    place = lowering.placements[op.input]
    lead = [*walk.sizes[: walk.lead]]
    length, steps = prod(walk.sizes[walk.lead :]), list(place.strides)
    stack: tuple[list[int], list[int]] = ([], [])
    if walk.stacked is not None:
        more = walk.taps[walk.stacked] - 1
        stack = [more + 1], [walk.jump]
        if walk.stacked < walk.lead:
            lead[walk.stacked] -= more * walk.spatial[walk.stacked][1]
        else:
            length -= more * walk.jump
    sizes = (dims(op.input.type)[0], *lead, *stack[0], walk.channels, length)
    strides = (steps[0], *steps[2 : 2 + walk.lead], *stack[1], steps[1], 1)
    return MappedMemory(place.buffer, scalar_type(element_of(op.input.type)), place.offset, sizes, strides)


def _build(op: ConvolutionOp, tile: GroupTile, lowering: Lowering) -> None:
    kind, weights = _kind(op, lowering), lowering.known(op.kernel)
    assert kind is not None
    assert weights is not None
    walk = _walk(op, kind, lowering)
    assert walk is not None
    k = lowering.kernel("convolution")
    columns = PlaneColumns(k, walk)
    epilogue = RowEpilogue(k, op, shape_of(op), lowering, run=columns.run)
    left = channels(k, op.kernel, walk.packed, tile.rows, kind, lowering)
    right = PlaneSource(k, _planes(op, walk, lowering), tile.columns, walk)
    sizes = GroupSizes(weights.shape[0], walk.columns, (dims(op.output.type)[0],), walk.steps)
    GroupProduct(k, tile, sizes, kind, (left, right), epilogue, columns=columns).build(op)
