"""The epilogue, from accumulators to memory: a thread has neighbouring columns of a row of the result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, i32
from xdsl.ir import Operation, SSAValue

from mlirt.dialects.fused.fused_op import IndexOp, SizeOp
from mlirt.dialects.fused.scalar_builder import scalar_type
from mlirt.dialects.kernel.buffers import length
from mlirt.dialects.kernel.fragment_map import FloatFragmentOp, SaturateFragmentOp
from mlirt.dialects.layout import vector_width
from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_types import byte_width, dims, element_count, element_of, is_half
from mlirt.kernels.lib.builder.kernel_builder import KernelBuilder
from mlirt.kernels.lib.cuda.warpgroups.group_tile import GroupTile
from mlirt.kernels.lib.cuda.warpgroups.int8_as_floats import with_floats
from mlirt.kernels.lib.cuda.warpgroups.reciprocals import with_reciprocals
from mlirt.kernels.lib.cuda.warpgroups.saturation import without_limits
from mlirt.kernels.lib.cuda.warpgroups.sources import MappedMemory
from mlirt.kernels.lib.epilogue import ProductOp, extra_operands, finished_fragment
from mlirt.kernels.lib.language import Index, Value, kernel, value_of
from mlirt.kernels.lib.language.context import emit
from mlirt.kernels.lib.language.simt_words import Access, count_where, load_fragment, store_fragment
from mlirt.kernels.lib.language.words import ceil_div, extent, place, split, stride
from mlirt.kernels.lib.loops.loop_nest import Affine, Nest, collapse, direct
from mlirt.kernels.lib.tactics.lowering import Lowering

WIDTH = 8
"""Neighbouring columns of a thread, if they are halves or have an order of their own."""
QUAD = 4
"""Threads that share a row."""
_PIECE = 16  # bytes of the widest access
_MIN_OPS_OF_FUNCTION = 13  # operations of a function such as the error function
_SHIFTS = 1e7


@dataclass(frozen=True)
class ResultShape:
    """The result as a batch of matrices: which of its dimensions are entries, rows and columns (in this order)."""

    batch: tuple[int, ...]
    rows: tuple[int, ...]
    columns: tuple[int, ...]
    groups: int = 1
    """Parts of the columns that are entries of the batch, each a product of its own; only without others."""

    @property
    def leading(self) -> int:
        """How many loops the entries have."""
        return len(self.batch) + (self.groups > 1)

    @property
    def axes(self) -> tuple[int, ...]:
        return (*self.batch, *self.rows, *self.columns)

    def nest(self, op: ProductOp, lowering: Lowering) -> Nest:
        """The result and its extra operands over these dimensions, the columns as one as far as all allow that."""
        output, space, places = op.output, dims(op.output.type), lowering.placements
        accesses = [*extra_operands(op, places), direct(output, places[output])]
        permuted = [Affine(one.value, tuple(one.steps[axis] for axis in self.axes), one.offset) for one in accesses]
        extents = [space[axis] for axis in self.axes]
        if self.groups > 1:
            return self._of_groups(extents, permuted)
        nest = Nest.of(extents, permuted)
        first = len(self.batch) + len(self.rows)
        for axis in reversed(range(first, len(self.axes) - 1)):
            outer, inner = nest.extents[axis : axis + 2]
            if outer == 1 or inner == 1:
                nest = nest.without(axis if outer == 1 else axis + 1)
            elif nest.merges(axis):
                nest = nest.merged(axis)
        return nest

    def _of_groups(self, extents: Sequence[Dim], accesses: Sequence[Affine]) -> Nest:
        """The groups in front, and the columns of one behind the rows."""
        *rows, columns = extents
        assert isinstance(columns, int)
        own = columns // self.groups
        split = [
            Affine(one.value, (one.steps[-1] * own, *one.steps[:-1], one.steps[-1]), one.offset) for one in accesses
        ]
        return Nest.of([self.groups, *rows, own], split)


@dataclass(frozen=True)
class Column:
    """A column of the result: the first one of a thread, and how many columns it is behind that."""

    first: Value
    distance: int = 0


def is_joined(op: ProductOp, shape: ResultShape, lowering: Lowering) -> bool:
    """Whether the columns of a result can be walked through as one dimension."""
    nest = shape.nest(op, lowering)
    return len(nest.extents) == len(shape.batch) + len(shape.rows) + 1


def is_pointwise(op: ProductOp) -> bool:
    """Whether an epilogue depends on values alone, not on where they are."""
    return not any(isinstance(inner, IndexOp | SizeOp) for inner in op.epilogue.block.ops)


def large_extras(op: ProductOp) -> int:
    """How many of the extra operands are as large as the result."""
    return len(_large(op))


def bytes_ahead(op: ProductOp) -> int:
    """Of an element of the extra operand that tiles may be copied of ahead; 0 where there is none.

    Where it does not lie as the result does, a tile that copies it ahead does without.
    """
    widths = {byte_width(element_of(value.type)) for value in _large(op)}
    return min(widths & {1, 2}, default=0)


def _large(op: ProductOp) -> list[SSAValue]:
    return [value for value in op.extras if element_count(value.type) == element_count(op.output.type)]


def result_width(op: ProductOp) -> int:
    """Bytes of an element of the result; more than two count as two, as the estimates were fitted."""
    return min(2, byte_width(element_of(op.output.type)))


def scalar_operations(op: ProductOp) -> int:
    """How many operations the epilogue takes for an element, about.

    Bits that are read as another type take none. Constants of floats are counted, as the estimates were fitted so.
    """
    counts = (_operations(inner) for inner in op.epilogue.block.ops)
    return sum(counts)


def _operations(op: Operation) -> int:
    if isinstance(op, math.FmaOp):
        return 1
    if isinstance(op, arith.BitcastOp | arith.TruncIOp) or (isinstance(op, arith.ConstantOp) and _is_shift(op)):
        return 0
    return 1 if op.name.startswith("arith") else _MIN_OPS_OF_FUNCTION


def _is_shift(op: arith.ConstantOp) -> bool:
    """Whether a constant is one of those by which integers become floats, and back: they stay in registers."""
    return isinstance(op.value, IntegerAttr) or (isinstance(op.value, FloatAttr) and op.value.value.data > _SHIFTS)


def width_of_results(op: ProductOp, tile: GroupTile, columns: Dim) -> int:
    """Neighbouring columns of a thread where the tile's columns may have any order: what one access writes.

    With more of them each access of a warp would write halves of sectors.
    """
    wide = _PIECE // byte_width(element_of(op.output.type))
    fits = tile.columns % (QUAD * wide) == 0 and isinstance(columns, int) and columns % wide == 0
    return wide if fits else WIDTH


class RowEpilogue:
    """The epilogue of an op on rows of its result."""

    def __init__(
        self,
        k: KernelBuilder,
        op: ProductOp,
        shape: ResultShape,
        lowering: Lowering,
        width: int = WIDTH,
    ) -> None:
        """`width` columns of a thread are neighbours."""
        region = op.epilogue
        self.k, self.element = k, element_of(op.output.type)
        wider = without_limits(region)
        self.is_limited = wider is not None
        self.region = wider or (with_reciprocals(region) if is_half(self.element) else region)
        nest = shape.nest(op, lowering)
        self.columns, self.width = nest.extents[-1], width
        first_row, column = shape.leading, shape.leading + len(shape.rows)
        nest = collapse(nest, frozenset({column}), frozenset({first_row, column}))
        self.extents = nest.extents[:-1]
        self.batch_loops = sum(group[0] < first_row for group in nest.groups)
        self._first_row = self.batch_loops if shape.groups > 1 else 0
        self.operands = nest.operands
        self.pointers = [k.buffer(one.value, one.offset) for one in nest.operands]
        self.together = [self._together(one, lowering) for one in nest.operands]
        # The first argument of the region is the sum.
        vectors = [1 + number for number in self.extras if self.operands[number].steps[-1] != 0]
        self.region, self.floats = with_floats(self.region, vectors)
        self._loaded: dict[tuple[int, Column], Value] = {}

    def _together(self, one: Affine, lowering: Lowering) -> dict[str, Any]:
        """How many columns of a thread lie side by side and so aligned that one access has them, for the ops."""
        size = byte_width(element_of(one.value.type))
        start = lowering.placements[one.value].offset + one.offset * size
        places = [start, *(step * size for step in one.steps[:-1])]
        most = min(self.width, _PIECE // size)
        is_known = one.steps[-1] == 1 and all(isinstance(number, int) for number in (self.columns, *places))
        count = vector_width(most * size, self.columns * size, *places) // size if is_known else 1
        return {"wide": count > 1, "together": count if 1 < count < most else 0}

    def at(self, batch: SSAValue, row: SSAValue) -> list[Value]:
        """The indices along the loops before the columns."""
        entries, rows = self.extents[: self.batch_loops], self.extents[self.batch_loops :]
        return [*(split(batch, entries) if entries else []), *(split(row, rows) if rows else [])]

    @kernel
    def valid(self, column: Column) -> Index:
        """How many of a thread's columns from `column` on exist: whole groups, and a part of the next one.

        Columns of a known number that groups divide end with a whole group.
        """
        left, group = max(extent(self.columns) - (column.first + column.distance), 0), QUAD * self.width
        if isinstance(self.columns, int) and self.columns % self.width == 0:
            return ceil_div(left, group) * self.width
        return left // group * self.width + min(left % group, self.width)

    @property
    def extras(self) -> range:
        """The numbers of the extra operands."""
        return range(len(self.operands) - 1)

    @property
    def is_by_rows(self) -> bool:
        """Whether each extra operand is one number for all columns of a row."""
        return all(self.operands[number].steps[-1] == 0 for number in self.extras)

    def is_fixed(self, number: int) -> bool:
        """Whether an extra operand is the same in all rows, of a group where there are any."""
        return all(step == 0 for step in self.operands[number].steps[self._first_row : -1])

    def bytes_of(self, number: int) -> int:
        """Of an element of an extra operand."""
        return byte_width(element_of(self.operands[number].value.type))

    def as_matrix(self, number: int) -> MappedMemory | None:
        """An extra operand as a matrix of rows and columns that the device can copy; None where it is none."""
        one, element = self.operands[number], element_of(self.operands[number].value.type)
        size, place = byte_width(element), self.k.lowering.placements[one.value]
        if len(self.extents) != 1 or self.batch_loops or self.is_fixed(number) or element != scalar_type(element):
            return None
        offset = place.offset + one.offset * size
        memory = MappedMemory(place.buffer, element, offset, (*self.extents, self.columns), one.steps)
        return memory if memory.fits() and self.width * size == _PIECE else None

    def read(self, number: int, count: int, at: Sequence[Value], column: Column, valid: Index | None) -> Value:
        """An extra operand of `count` results of a row, from `column` on: `valid` of them exist (None: all).

        What is the same in all rows is loaded once.
        """
        place = (number, column) if self.is_fixed(number) else None
        value = self._loaded.get(place) if place else None
        if value is None:
            value = self._load(number, count, at, column, valid)
        if place:
            self._loaded[place] = value
        return value

    @kernel
    def _load(self, number: int, count: int, at: Sequence[Value], column: Column, valid: Index | None) -> Value:
        if self.operands[number].steps[-1] == 0:
            return value_of(self.pointers[number])[self._index(number, at, column)]
        return load_fragment(self.pointers[number], self._index(number, at, column), self._access(number, count, valid))

    def write(
        self,
        accumulators: Value,
        extras: Sequence[Value],
        at: Sequence[Value],
        column: Column,
        valid: Index | None,
        is_row: bool | None,
    ) -> None:
        """Results of a row from sums of groups from `column` on, and what `read` gave for them.

        `valid` of them exist (None: all), none where `is_row` does not hold; what `at` names must exist anyway.
        """
        results = self.finish(accumulators, extras)
        if is_row is not None:
            valid = count_where(is_row, length(accumulators) if valid is None else valid)
        self.store(results, at, column, valid)

    def finish(self, accumulators: Value, extras: Sequence[Value]) -> Value:
        """Results from sums, and what `read` gave for them."""
        values = [accumulators, *extras]
        for number in self.floats:
            values[number] = emit(FloatFragmentOp(values[number]))
        result = finished_fragment(self.region, values, i32 if self.is_limited else self.element)
        return emit(SaturateFragmentOp(result, self.element)) if self.is_limited else result

    def store(self, results: Value, at: Sequence[Value], column: Column, valid: Index | None) -> None:
        """Write results of a row from `column` on: `valid` of them exist (None: all)."""
        access = self._access(-1, length(results), valid)
        store_fragment(results, self.pointers[-1], self._index(-1, at, column), access)

    @kernel
    def _index(self, number: int, at: Sequence[Value], column: Column) -> Value:
        """The distance within a row comes last, so that all columns of a thread share the rest."""
        steps, places = self.operands[number].steps, [*at, column.first, column.distance]
        pairs = zip(places, [*steps, steps[-1]], strict=True)
        return place(sum([one * stride(step) for one, step in pairs if step != 0]))

    def _access(self, number: int, count: int, valid: Index | None) -> Access:
        """Where a thread's results are, from its first column on."""
        step, width = self.operands[number].steps[-1], self.width
        offsets = [QUAD * width * (p // width) + p % width for p in range(count)]
        return Access(offsets, None if step == 1 else extent(step), valid, **self.together[number])
