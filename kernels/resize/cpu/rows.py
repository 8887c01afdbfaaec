"""Resizing along rows on a CPU: a row is made from those of the input that it looks at, and then resampled by lanes.

parallel (.., rows of the result) {
  for each vector of the input's row: the weighted sum of the rows at the taps of the other axes -> memory of the worker
  for each vector of the result's row: the weighted sum of its taps, whose places and weights are in tables
}

Where samples are elements of the input, lanes find theirs there. Where each element is some samples in turn, as at
twice the size, elements are walked instead, and written so often.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from xdsl.dialects.builtin import f32, i32

from mlirt.dialects.fused.resize import ResizeOp
from mlirt.dialects.fused.scalar_builder import compute_type
from mlirt.dialects.interpolation import ResizeKind
from mlirt.dialects.tensor_types import dims, element_of, is_float
from mlirt.kernels.lib.builder.kernel_builder import KernelBuilder
from mlirt.kernels.lib.language import Value, build, kernel, value_of
from mlirt.kernels.lib.language.nest_words import Places
from mlirt.kernels.lib.language.tile_words import lane_loop, tasks, worker_memory
from mlirt.kernels.lib.language.words import clamp, constant, extent, index_of, integer_of, place, static_range, strided
from mlirt.kernels.lib.loops.loop_nest import Affine, Nest, NestCode, collapse
from mlirt.kernels.lib.loops.rows import whole
from mlirt.kernels.lib.tactics.lowering import Lowering

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array

OPS = (ResizeOp,)
TARGETS = frozenset({"cpu"})
PRIORITY = 10

# Places of a row of the input along the axes but the last one, and its weight.
_Row: TypeAlias = tuple[list[Value], Value]

# Elements of a row of the input that a worker keeps.
_KEPT = 4096
# Samples in turn that are the same element, at which whole vectors are spread over neighbours.
_MAX_REPEATS = 8
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

    @property
    def repeats(self) -> int:
        """How many samples in turn are the same element, where that holds for all and there are few; else 0."""
        import numpy as np

        places = self.places[:, 0]
        times = int(np.count_nonzero(places == 0))
        is_regular = 1 < times <= _MAX_REPEATS and places.size % times == 0
        return times if is_regular and np.array_equal(places, np.arange(places.size) // times) else 0


def lower(op: ResizeOp, lowering: Lowering) -> bool:
    tables = _tables(op)
    nest = None if not tables else _nest(op, tables, lowering)
    if nest is None:
        return False
    k = lowering.kernel("resize_rows")
    build(k, _Rows(k, op, nest, tables, lowering).write)
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

        self.op, self.nest, self.code = op, nest, NestCode(k, nest)
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

    @kernel
    def write(self) -> None:
        extents, width = list(self.nest.extents[:-1]), len(self.nest.extents) - 1
        last = integer_of(self.length - 1, i32)
        kept = None if self.op.kind.data is ResizeKind.NEAREST else worker_memory(f32, _KEPT)
        for loops in tasks(extents or [1]):
            outer = loops[:width]
            rows = self._rows(outer)
            if kept is None:
                self._copy(outer, self._moved(rows[0][0]), last)
            else:
                for lane in lane_loop(self.length, self.lanes):
                    kept[lane] = self._combined(outer, rows, lane)
                for lane in lane_loop(self.width, self.lanes):
                    self.code.write(self._sample(kept, lane, last), f32, 1, outer, [(lane, 1)])

    @kernel
    def _copy(self, outer: Sequence[Value], moved: Places, last: Value) -> None:
        """The samples of a row that are elements of one of the input's, each of them once or some times in turn."""
        repeats = self.along.repeats
        if repeats:
            for step in range(value_of(self.length)):
                element = self.code.load(0, outer, [*moved, (place(step), 1)])
                for repeat in static_range(repeats):
                    self.code.store(element, 1, outer, [(place(step * repeats + repeat), 1)])
        else:
            for lane in lane_loop(self.width, self.lanes):
                element = self.code.load(0, outer, [*moved, (self._place(0, lane, last), 1)])
                self.code.store(element, 1, outer, [(lane, 1)])

    @kernel
    def _rows(self, outer: Sequence[Value]) -> list[_Row]:
        """The rows of the input that a row of the result looks at: their places along the other axes, and weights."""
        rows: list[_Row] = [([], constant(1.0, f32))]
        for table, places, weights in zip(self.across, self.places, self.weights, strict=True):
            position = outer[self.nest.groups.index((table.axis,))]
            taps = [self._tap(table, places, weights, position, tap) for tap in static_range(table.taps)]
            rows = [([*before, place], weight * own) for before, weight in rows for place, own in taps]
        return rows

    @kernel
    def _tap(self, table: Table, places: Value, weights: Value, position: Value, tap: int) -> tuple[Value, Value]:
        """The place and the weight of a tap of a sample along an axis."""
        found = index_of(strided(places, extent(table.taps), 1)[position, tap])
        place = clamp(found, extent(dims(self.op.input.type)[table.axis]))
        return place, strided(weights, extent(table.taps), 1)[position, tap]

    def _moved(self, places: Sequence[Value]) -> Places:
        return list(zip(places, self.steps, strict=True))

    @kernel
    def _place(self, tap: int, lane: Value, last: Value) -> Value:
        """Where a sample has a tap along the row, whose last element has the place `last`."""
        found = strided(self.row_places, 1, 1)[self.width * tap, lane]
        return index_of(value_of(max(min(found, last), 0)))

    @kernel
    def _combined(self, outer: Sequence[Value], rows: Sequence[_Row], lane: Value) -> Value:
        """What the rows of the input come to together."""
        numbers = [self.code.read(0, f32, outer, [*self._moved(places), (lane, 1)]) for places, _ in rows]
        weighted = [
            number * weight if places else number for number, (places, weight) in zip(numbers, rows, strict=True)
        ]
        return value_of(sum(weighted))

    @kernel
    def _sample(self, kept: Value, lane: Value, last: Value) -> Value:
        """A sample along the row that is kept."""
        taps, weights = static_range(self.along.taps), strided(self.row_weights, 1, 1)
        return value_of(sum([kept[self._place(tap, lane, last)] * weights[self.width * tap, lane] for tap in taps]))
