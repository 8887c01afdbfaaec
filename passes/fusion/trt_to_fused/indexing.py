"""Gather, scatter and selection of the largest elements: the fused ops have the properties of the layers."""

from __future__ import annotations

from itertools import pairwise

from mlirt.dialects.fused.access import iteration
from mlirt.dialects.fused.gather import GatherOp as FusedGatherOp
from mlirt.dialects.fused.scatter import ScatterOp as FusedScatterOp
from mlirt.dialects.fused.topk import ExtremeKind
from mlirt.dialects.fused.topk import TopkOp as FusedTopkOp
from mlirt.dialects.indexing import GatherMode
from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_types import dims, rank
from mlirt.dialects.trt.gather import GatherOp
from mlirt.dialects.trt.scatter import ScatterOp
from mlirt.dialects.trt.topk import TopkOp
from mlirt.passes.fusion.trt_to_fused.conversion import Conversion, Conversions


def convert_gather(at: Conversion) -> None:
    """`trt.gather` becomes `fused.gather`; known, evenly spaced indices become a strided read, which fuses."""
    op = at.op
    assert isinstance(op, GatherOp)
    steps = _even_steps(at, op)
    axis = op.axis.value.data
    if steps is not None:
        first, step = steps
        scalar = rank(op.indices.type) == 0
        own: Dim = first if scalar else first + iteration(axis) * step
        after = range(axis + 1, rank(op.data.type))
        indices = [*(iteration(k) for k in range(axis)), own, *(iteration(k - scalar) for k in after)]
        return at.replace(at.moved(op.data, dims(op.output.type), indices))
    at.replace(at.emit(FusedGatherOp(op.data, op.indices, op.output.type, op.mode.data, axis, op.elementwise_dims)))


def _even_steps(at: Conversion, op: GatherOp) -> tuple[Dim, int] | None:
    """First position and step of known indices along an axis; None where they are uneven or may be out of range."""
    array = at.array_of(op.indices)
    if (
        op.mode.data is not GatherMode.DEFAULT
        or op.elementwise_dims
        or array is None
        or array.ndim > 1
        or not array.size
    ):
        return None
    length = dims(op.data.type)[op.axis.value.data]
    positions = [int(position) for position in array.reshape(-1)]
    if not isinstance(length, int):  # only the first and the last element surely exist
        return ((0, 0) if positions == [0] else (length - 1, 0)) if positions in ([0], [-1]) else None
    settled = [position + length if position < 0 else position for position in positions]
    differences = {after - before for before, after in pairwise(settled)}
    if len(differences) > 1 or not all(0 <= position < length for position in settled):
        return None
    return settled[0], next(iter(differences), 0)


def convert_scatter(at: Conversion) -> None:
    """`trt.scatter` becomes `fused.scatter`."""
    op = at.op
    assert isinstance(op, ScatterOp)
    how = op.mode.data, op.axis.value.data, op.reduction.data, bool(op.unique_indices.value.data)
    at.replace(at.emit(FusedScatterOp(op.data, op.indices, op.updates, *how)))


def convert_topk(at: Conversion) -> None:
    """`trt.topk` becomes `fused.topk`."""
    op = at.op
    assert isinstance(op, TopkOp)
    kind, axis, is_sorted = ExtremeKind(op.kind.data.value), op.axis.value.data, bool(op.sorted.value.data)
    made = FusedTopkOp(kind, op.input, axis, op.values.type, op.indices.type, is_sorted)
    at.emit(made)
    at.replace(made.values, made.indices)


CONVERSIONS: Conversions = {GatherOp: convert_gather, ScatterOp: convert_scatter, TopkOp: convert_topk}
