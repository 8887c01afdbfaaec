"""Resizing along rows on a CPU: a row is made from those of the input that it looks at, and then resampled by lanes.

parallel (.., rows of the result) {
  for each vector of the input's row: the weighted sum of the rows at the taps of the other axes -> memory of the worker
  for each vector of the result's row: the weighted sum of its taps, whose places and weights are in tables
}

Where samples are elements of the input, lanes find theirs there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from xdsl.dialects import arith
from xdsl.dialects.builtin import UnitAttr, f32, i32
from xdsl.ir import SSAValue

from mlirt.dialects.fused.resize import ResizeOp
from mlirt.dialects.fused.scalar_builder import compute_type
from mlirt.dialects.interpolation import ResizeKind
from mlirt.dialects.kernel.core import LoadOp, ParallelOp, StoreOp, YieldOp
from mlirt.dialects.kernel.worker import WorkerMemoryOp
from mlirt.dialects.tensor_types import dims, element_of, is_float
from mlirt.kernels.lib.builder.kernel_builder import KernelBuilder
from mlirt.kernels.lib.loops.loop_nest import Affine, Nest, NestCode, collapse
from mlirt.kernels.lib.loops.row_lanes import along_row
from mlirt.kernels.lib.loops.rows import whole
from mlirt.kernels.lib.tactics.lowering import Lowering

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array

OPS = (ResizeOp,)
TARGETS = frozenset({"cpu"})
PRIORITY = 10

# Elements of a row of the input that a worker keeps.
_KEPT = 4096
# Taps of a sample that are written out one by one.
_MAX_TAPS = 8


@dataclass(frozen=True)
class Table:
    """The places and weights of the samples of an axis, by sample and tap."""

    axis: int
    places: Array
    weights: Array

    @property
    def taps(self) -> int:
        return self.places.shape[1]


def lower(op: ResizeOp, lowering: Lowering) -> bool:
    tables = _tables(op)
    nest = None if not tables else _nest(op, tables, lowering)
    if nest is None:
        return False
    k = lowering.kernel("resize_rows")
    _Rows(k, op, nest, tables, lowering).write()
    k.finish(op)
    return True


def _tables(op: ResizeOp) -> list[Table]:
    """One for each resized axis; none where lengths are not known, samples lie outside or are not summed in float32."""
    element, found = element_of(op.input.type), list[Table]()
    is_copy = op.kind.data is ResizeKind.NEAREST
    if not is_copy and (not is_float(element) or compute_type(element) != f32):
        return []
    for axis, (before, after) in enumerate(zip(dims(op.input.type), dims(op.output.type), strict=True)):
        if op.is_copied(axis):
            continue
        if not isinstance(before, int) or not isinstance(after, int):
            return []
        how, scale = op.resampling(axis), op.scale(axis, before, after)
        places, weights = how.taps(before, after, scale)
        if how.outside(before, after, scale).any() or places.shape[1] > _MAX_TAPS:
            return []
        found.append(Table(axis, places, weights))
    return found


def _nest(op: ResizeOp, tables: Sequence[Table], lowering: Lowering) -> Nest | None:
    """The loops over the result, the last one along its rows; None where they are no rows of the input or too long."""
    axes = {table.axis for table in tables}
    source = whole(op.input, lowering)
    fixed = Affine(op.input, tuple(0 if axis in axes else step for axis, step in enumerate(source.steps)))
    nest = collapse(Nest.of(dims(op.output.type), [fixed, whole(op.output, lowering)]).ordered(1), frozenset(axes))
    last, length = tables[-1].axis, dims(op.input.type)[tables[-1].axis]
    assert isinstance(length, int)
    is_row = nest.groups[-1] == (last,) and source.steps[last] == 1 and nest.operands[1].steps[-1] == 1
    return nest if is_row and length <= _KEPT else None


class _Rows:
    """The kernel of one op."""

    def __init__(self, k: KernelBuilder, op: ResizeOp, nest: Nest, tables: Sequence[Table], lowering: Lowering) -> None:
        import numpy as np

        self.k, self.op, self.nest = k, op, nest
        self.code = NestCode(k, nest)
        self.lanes = lowering.target.vector_bits // 32
        *self.across, self.along = tables
        self.places = [k.weights(np.ascontiguousarray(one.places, np.int64), "resize.places") for one in self.across]
        self.weights = [
            k.weights(np.ascontiguousarray(one.weights, np.float32), "resize.weights") for one in self.across
        ]
        # Lanes are samples, so that those of one tap lie side by side.
        self.row_places = k.weights(np.ascontiguousarray(self.along.places.T, np.int32), "resize.row_places")
        self.row_weights = k.weights(np.ascontiguousarray(self.along.weights.T, np.float32), "resize.row_weights")
        self.steps = [k.strides(op.input)[one.axis] for one in self.across]
        self.length, self.width = (k.size(dims(one.type)[self.along.axis]) for one in (op.input, op.output))
        self.last = k.to_integer(k.sub(self.length, 1), i32)
        if op.kind.data is not ResizeKind.NEAREST:
            self.kept = k.value(WorkerMemoryOp(f32, _KEPT))

    def write(self) -> None:
        k = self.k
        tasks = ParallelOp([k.size(extent) for extent in self.nest.extents[:-1]] or [k.size(1)])
        tasks.attributes["workers"] = UnitAttr()
        with k.inside(tasks.body.block):
            outer = list(tasks.body.block.args)[: len(self.nest.extents) - 1]
            rows = self._rows(outer)
            if self.op.kind.data is ResizeKind.NEAREST:
                along_row(self.k, self.width, self.lanes, lambda lane: self._pick(outer, rows[0][0], lane))
            else:
                along_row(self.k, self.length, self.lanes, lambda lane: self._keep(outer, rows, lane))
                along_row(self.k, self.width, self.lanes, lambda lane: self._sample(outer, lane))
            k.insert(YieldOp(operands=[[]]))
        k.insert(tasks)

    def _rows(self, outer: Sequence[SSAValue]) -> list[tuple[list[SSAValue], SSAValue]]:
        """The rows of the input that a row of the result looks at: their places along the other axes, and weights."""
        k, rows = self.k, list[tuple[list[SSAValue], SSAValue]]([([], self.k.constant(1.0, f32))])
        for table, places, weights in zip(self.across, self.places, self.weights, strict=True):
            position = outer[self.nest.groups.index((table.axis,))]
            taps = [
                (
                    k.clamp(
                        k.from_integer(k.value(LoadOp(places, [position, k.constant(tap)], [k.size(table.taps), 1]))),
                        k.size(dims(self.op.input.type)[table.axis]),
                    ),
                    k.value(LoadOp(weights, [position, k.constant(tap)], [k.size(table.taps), 1])),
                )
                for tap in range(table.taps)
            ]
            rows = [
                ([*before, place], k.value(arith.MulfOp(weight, own))) for before, weight in rows for place, own in taps
            ]
        return rows

    def _pick(self, outer: Sequence[SSAValue], places: list[SSAValue], lane: SSAValue) -> None:
        more = [*zip(places, self.steps, strict=True), (self._place(0, lane), 1)]
        self.code.store(self.code.load(0, outer, more), 1, outer, [(lane, 1)])

    def _place(self, tap: int, lane: SSAValue) -> SSAValue:
        """Where a sample has a tap along the row."""
        k = self.k
        place = k.value(LoadOp(self.row_places, [k.mul(self.width, tap), lane], [1, 1]))
        below = k.value(arith.MinSIOp(place, self.last))
        return k.from_integer(k.value(arith.MaxSIOp(below, k.constant(0, i32))))

    def _keep(self, outer: Sequence[SSAValue], rows: list[tuple[list[SSAValue], SSAValue]], lane: SSAValue) -> None:
        k, total = self.k, None
        for places, weight in rows:
            more = [*zip(places, self.steps, strict=True), (lane, 1)]
            value = self.code.read(0, f32, outer, more)
            value = k.value(arith.MulfOp(value, weight)) if places else value
            total = value if total is None else k.value(arith.AddfOp(total, value))
        assert total is not None
        k.insert(StoreOp(total, self.kept, [lane], [1]))

    def _sample(self, outer: Sequence[SSAValue], lane: SSAValue) -> None:
        k, total = self.k, None
        for tap in range(self.along.taps):
            value = k.value(LoadOp(self.kept, [self._place(tap, lane)], [1]))
            weight = k.value(LoadOp(self.row_weights, [k.mul(self.width, tap), lane], [1, 1]))
            value = k.value(arith.MulfOp(value, weight))
            total = value if total is None else k.value(arith.AddfOp(total, value))
        assert total is not None
        self.code.write(total, f32, 1, outer, [(lane, 1)])
