"""Padding along neighbours in memory, on a GPU: a thread finds some neighbours of the result one by one and stores
them together.

Where the rows of the result are no multiple of what is stored at once, the end of one row and the start of the next
are in one vector:

parallel (vector of the whole result) {
  the row of its first element and the row behind that: where they lie in the input, and whether they are in it
  for each element: the place in one of the two rows, resolved by the mode; load or fill
  store
}
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlirt.dialects.fused.pad import PadOp
from mlirt.dialects.slicing import PadMode
from mlirt.dialects.symbolic import Dim, ceil_div, floor_div, product
from mlirt.dialects.tensor_types import byte_width, dims, element_of, is_bool
from mlirt.dialects.typical_sizes import typical, typical_values
from mlirt.kernels.copy.pad import fill_of, moved_nest, resolve
from mlirt.kernels.lib.builder.index_arithmetic import known
from mlirt.kernels.lib.builder.kernel_builder import Stride
from mlirt.kernels.lib.cuda.tiles.alignment import is_multiple, widest_access
from mlirt.kernels.lib.language import Value, build, kernel, value_of
from mlirt.kernels.lib.language.simt_words import Access, fragment, store_fragment
from mlirt.kernels.lib.language.words import constant, parallel, place, static_range
from mlirt.kernels.lib.loops.loop_nest import Nest
from mlirt.kernels.lib.tactics.lowering import Lowering

OPS = (PadOp,)
TARGETS = frozenset({"cuda"})
PRIORITY = 10

_VECTOR_BYTES = 16  # bytes of a vector
_THREADS = 1  # times those that a device should have at least: that a launch should have
_OUTSIDE = -(2**30)  # no place along a row, nor are its neighbours


@dataclass(frozen=True)
class Segments:
    """The loops over the result, the last one along neighbours of which a thread has `vector`.

    `crosses`: a vector may reach into the next row.
    """

    nest: Nest
    moved: frozenset[int]
    vector: int
    crosses: bool

    @property
    def length(self) -> Dim:
        return self.nest.extents[-1]

    @property
    def rows(self) -> Dim:
        return product(self.nest.extents[:-1])


@dataclass(frozen=True)
class Row:
    """Where a row of the input starts, where the first of a vector's elements lies along it before the mode determines
    that, and whether there is such a row.
    """

    start: Value
    place: Value
    inside: bool


@dataclass(frozen=True)
class _Cell:
    """Where an element lies in the input, and whether it does."""

    index: Value
    inside: bool


def lower(op: PadOp, lowering: Lowering) -> bool:
    segments = _segments(op, lowering)
    if segments is None:
        return False
    _Padded(op, segments, lowering).write()
    return True


def _segments(op: PadOp, lowering: Lowering) -> Segments | None:
    """The vectors of the result; None where neighbours cannot be stored together, or can be loaded so as well."""
    (nest, axes), results = moved_nest(op, lowering), dims(op.output.type)
    moved, element = frozenset(axes), element_of(op.output.type)
    if not nest.groups or not moved.intersection(nest.groups[-1]) or is_bool(element):
        return None
    target = nest.operands[1].steps
    is_dense = all(target[k] == nest.extents[k + 1] * target[k + 1] for k in range(len(target) - 1))
    elements = typical(product(results), typical_values(lowering.block))
    vector, length = _VECTOR_BYTES // byte_width(element), nest.extents[-1]
    threads = _THREADS * lowering.target.gpu.moves.threads
    while vector > 1 and elements < vector * threads:
        vector //= 2
    while vector > 1 and target[-1] == 1:
        if is_multiple(length, vector) and widest_access(op.output, target[:-1], lowering) >= vector:
            return Segments(nest, moved, vector, crosses=False)
        fits = isinstance(length, int) and length >= vector
        if is_dense and fits and widest_access(op.output, [], lowering) >= vector:
            return Segments(nest, moved, vector, crosses=True)
        vector //= 2
    return None


class _Padded:
    """The kernel of one op."""

    def __init__(self, op: PadOp, segments: Segments, lowering: Lowering) -> None:
        self.op, self.segments = op, segments
        self.k = k = lowering.kernel("pad")
        nest = segments.nest
        self.extents = [value_of(k.size(size)) for size in nest.extents]
        self.steps: list[Stride] = [k.stride(step) for step in nest.operands[0].steps]
        self.axes = [next((axis for axis in group if axis in segments.moved), None) for group in nest.groups]
        self.pads = {axis: value_of(k.size(op.pre.dims()[axis])) for axis in segments.moved}
        self.strides = {axis: k.stride(op.strides()[axis]) for axis in segments.moved}
        self.lengths = {axis: value_of(k.size(dims(op.input.type)[axis])) for axis in segments.moved}
        self.source, self.target = k.buffer(op.input), k.buffer(op.output)
        self.fill = build(k, constant, 0, element_of(op.input.type))
        fill = None if op.fill is None else lowering.constant_array(op.fill)
        if op.fill is not None and (fill is None or fill.reshape(-1)[:1].tobytes().strip(b"\0")):
            self.fill = build(k, fill_of, op)

    def write(self) -> None:
        build(self.k, self._in_all_rows if self.segments.crosses else self._in_rows)
        self.k.finish(self.op)

    @kernel
    def _in_all_rows(self) -> None:
        """Vectors of the whole result, which may reach into the next row."""
        segments, k = self.segments, self.k
        total = segments.rows * segments.length
        for number in parallel(ceil_div(total, segments.vector)):
            start = number * segments.vector
            column, row = start % self.extents[-1], start // self.extents[-1]
            own, behind = [k.split(one, self.extents[:-1]) for one in (row, row + 1)]
            rows, is_whole = [self._row(own, column, True)], is_multiple(total, segments.vector)
            exists = segments.rows == 1 or is_whole or behind[0] < self.extents[0]
            rows = [*rows, self._row(behind, column - self.extents[-1], exists)]
            values = self._vector(rows, column)
            if is_whole:
                self._store_whole(values, start)
            else:
                self._store(values, start, value_of(k.size(total)) - start)

    @kernel
    def _in_rows(self) -> None:
        """Vectors of which rows have a whole number."""
        segments, k = self.segments, self.k
        *outer, length = segments.nest.extents
        for loops in parallel([*outer, floor_div(length, segments.vector)]):
            column, start = loops[-1] * segments.vector, place(0)
            for at, step in zip([*loops[:-1], column], segments.nest.operands[1].steps, strict=True):
                start = start + at * k.stride(step)
            self._store_whole(self._vector([self._row(loops[:-1], column, True)], column), start)

    @kernel
    def _vector(self, rows: Sequence[Row], column: Value) -> Value:
        """The elements from a column of a row on; where it may be reached, the next row is given too."""
        return fragment([self._loaded(self._cell(rows, column, lane)) for lane in static_range(self.segments.vector)])

    @kernel
    def _store(self, values: Value, start: Value, left: Value) -> None:
        """Store as many elements as the result has from a place on."""
        vector = self.segments.vector
        if left >= vector:
            self._store_whole(values, start)
        else:
            store_fragment(values, self.target, start, Access(range(vector), valid=left))

    def _store_whole(self, values: Value, start: Value) -> None:
        store_fragment(values, self.target, start, Access(range(self.segments.vector), wide=True))

    @kernel
    def _row(self, row: Sequence[Value], column: Value, inside: bool) -> Row:
        """What a row of the result takes its elements from, from a column on."""
        index, mode, last = place(0), self.op.mode.data, self._last
        for at, axis, step in zip(row, self.axes, self.steps, strict=False):
            if axis is None:
                index = index + at * step
            else:
                source, valid = resolve(at * self.strides[axis] - self.pads[axis], self.lengths[axis], mode)
                inside = inside and valid
                index = index + source * step
        first = column * self.strides[last] - self.pads[last]
        apart = known(self.strides[last])
        is_near = apart is not None and abs(apart) * self.segments.vector < -_OUTSIDE
        if inside is not True and is_near and mode is PadMode.CONSTANT:
            return Row(index, first if inside else place(_OUTSIDE), True)
        return Row(index, first, inside)

    @property
    def _last(self) -> int:
        axis = self.axes[-1]
        assert axis is not None
        return axis

    @kernel
    def _cell(self, rows: Sequence[Row], column: Value, lane: int) -> _Cell:
        """What an element of a vector is taken from, of its own row or of the next one."""
        last, own = self._last, rows[0]
        start, first, inside = own.start, own.place, own.inside
        if len(rows) > 1 and lane:
            behind = rows[1]
            crosses = column >= self.extents[-1] - lane
            start, first = behind.start if crosses else own.start, behind.place if crosses else own.place
            if behind.inside is not True or own.inside is not True:
                inside = behind.inside if crosses else own.inside
        source, valid = resolve(first + place(lane) * self.strides[last], self.lengths[last], self.op.mode.data)
        index = start + source * self.steps[-1]
        return _Cell(index, inside and valid)

    @kernel
    def _loaded(self, cell: _Cell) -> Value:
        """An element of the input, or what stands outside of it."""
        found = self.fill
        if cell.inside:
            found = self.source[cell.index]
        return found


__all__ = ["lower"]
