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

from xdsl.dialects.arith import SelectOp
from xdsl.dialects.builtin import i1
from xdsl.ir import SSAValue

from mlirt.dialects.fused.pad import PadOp
from mlirt.dialects.kernel.core import LoadOp
from mlirt.dialects.kernel.fragment import FragmentOp
from mlirt.dialects.slicing import PadMode
from mlirt.dialects.symbolic import Dim, ceil_div, floor_div, product
from mlirt.dialects.tensor_types import byte_width, dims, element_of, is_bool
from mlirt.dialects.typical_sizes import typical, typical_values
from mlirt.kernels.copy.pad import moved_nest, resolve
from mlirt.kernels.lib.builder.index_arithmetic import known
from mlirt.kernels.lib.builder.kernel_builder import Stride
from mlirt.kernels.lib.cuda.tiles.alignment import is_multiple, widest_access
from mlirt.kernels.lib.language import Value, build, kernel, value_of
from mlirt.kernels.lib.language.simt_words import Access, store_fragment
from mlirt.kernels.lib.language.values import bool_of
from mlirt.kernels.lib.loops.block_lanes import zero
from mlirt.kernels.lib.loops.loop_nest import Nest
from mlirt.kernels.lib.tactics.lowering import Lowering

OPS = (PadOp,)
TARGETS = frozenset({"cuda"})
PRIORITY = 10

_VECTOR_BYTES = 16  # bytes of a vector
_THREADS = 16 * 1024  # that a launch should have
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
    that, and whether there is such a row (None: surely).
    """

    start: SSAValue
    place: SSAValue
    inside: SSAValue | None


@dataclass(frozen=True)
class _Cell:
    """Where an element lies in the input, and whether it does."""

    index: SSAValue
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
    while vector > 1 and elements < vector * _THREADS:
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
        self.extents = [k.size(size) for size in nest.extents]
        self.steps: list[Stride] = [k.stride(step) for step in nest.operands[0].steps]
        self.axes = [next((axis for axis in group if axis in segments.moved), None) for group in nest.groups]
        self.pads = {axis: k.size(op.pre.dims()[axis]) for axis in segments.moved}
        self.strides = {axis: k.stride(op.strides()[axis]) for axis in segments.moved}
        self.lengths = {axis: k.size(dims(op.input.type)[axis]) for axis in segments.moved}
        self.source, self.target = k.buffer(op.input), k.buffer(op.output)
        fill = None if op.fill is None else lowering.constant_array(op.fill)
        self.fill = value_of(zero(k, element_of(op.input.type)))
        if op.fill is not None and (fill is None or fill.reshape(-1)[:1].tobytes().strip(b"\0")):
            self.fill = k.value(LoadOp(k.buffer(op.fill), [k.constant(0)], [1]))

    def write(self) -> None:
        build(self.k, self._write)
        self.k.finish(self.op)

    def _write(self) -> None:
        k, segments = self.k, self.segments
        *outer, length = segments.nest.extents
        if segments.crosses:
            total = segments.rows * length
            with k.parallel([ceil_div(total, segments.vector)]) as (number,):
                start = k.mul(number, segments.vector)
                column, row = k.rem(start, self.extents[-1]), k.div(start, self.extents[-1])
                own, behind = (k.split(one, self.extents[:-1]) for one in (row, k.add(row, 1)))
                self._vector(own, behind, column, start, total)
        else:
            with k.parallel([*outer, floor_div(length, segments.vector)]) as loops:
                column, start = k.mul(loops[-1], segments.vector), k.constant(0)
                for at, step in zip([*loops[:-1], column], segments.nest.operands[1].steps, strict=True):
                    start = k.add(start, k.mul(at, k.stride(step)))
                self._vector(loops[:-1], None, column, start, None)

    def _vector(
        self,
        row: Sequence[SSAValue],
        behind: Sequence[SSAValue] | None,
        column: SSAValue,
        start: SSAValue,
        total: Dim | None,
    ) -> None:
        """Find and store the elements from a column of a row on; `behind` is the next row, where it may be reached."""
        k, segments = self.k, self.segments
        places = [self._row(row, column)]
        if behind is not None:
            exists = None
            if segments.rows != 1 and not is_multiple(segments.rows * segments.length, segments.vector):
                exists = k.compare("slt", behind[0], self.extents[0])
            places.append(self._row(behind, k.sub(column, self.extents[-1]), exists))
        values = k.value(
            FragmentOp([self._loaded(self._cell(places, column, lane)) for lane in range(segments.vector)])
        )
        if total is None or is_multiple(total, segments.vector):
            self._store_whole(values, value_of(start))
        else:
            self._store(values, value_of(start), k.sub(k.size(total), start))

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

    def _row(self, row: Sequence[SSAValue], column: SSAValue, inside: SSAValue | None = None) -> Row:
        """What a row of the result takes its elements from, from a column on."""
        k, index = self.k, self.k.constant(0)
        for at, axis, step in zip(row, self.axes, self.steps, strict=False):
            place = at
            if axis is not None:
                wanted = k.sub(k.mul(at, self.strides[axis]), self.pads[axis])
                place, valid = resolve(k, wanted, self.lengths[axis], self.op.mode.data)
                inside = k.both(inside, valid)
            index = k.add(index, k.mul(place, step))
        last = self._last
        place = k.sub(k.mul(column, self.strides[last]), self.pads[last])
        step = known(self.strides[last])
        is_near = step is not None and abs(step) * self.segments.vector < -_OUTSIDE
        if inside is not None and is_near and self.op.mode.data is PadMode.CONSTANT:
            return Row(index, k.select(inside, place, _OUTSIDE), None)
        return Row(index, place, inside)

    @property
    def _last(self) -> int:
        axis = self.axes[-1]
        assert axis is not None
        return axis

    def _cell(self, rows: Sequence[Row], column: SSAValue, lane: int) -> _Cell:
        """What an element of a vector is taken from, of its own row or of the next one."""
        k, last, own = self.k, self._last, rows[0]
        if len(rows) > 1 and lane:
            crosses, behind = k.compare("sge", column, k.sub(self.extents[-1], lane)), rows[1]
            start, place = k.select(crosses, behind.start, own.start), k.select(crosses, behind.place, own.place)
            own = Row(start, place, self._chosen(crosses, behind.inside, own.inside))
        wanted = k.add(own.place, k.mul(k.constant(lane), self.strides[last]))
        place, valid = resolve(k, wanted, self.lengths[last], self.op.mode.data)
        index = k.add(own.start, k.mul(place, self.steps[-1]))
        inside = k.both(own.inside, valid)
        return _Cell(index, True if inside is None else bool_of(inside))

    @kernel
    def _loaded(self, cell: _Cell) -> Value:
        """An element of the input, or what stands outside of it."""
        found = self.fill
        if cell.inside:
            found = self.source[cell.index]
        return found

    def _chosen(self, crosses: SSAValue, behind: SSAValue | None, own: SSAValue | None) -> SSAValue | None:
        if behind is None and own is None:
            return None
        yes = self.k.constant(1, i1)
        return self.k.value(SelectOp(crosses, behind or yes, own or yes))


__all__ = ["lower"]
