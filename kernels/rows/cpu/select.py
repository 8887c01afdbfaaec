"""Many of the extreme elements of long rows on a CPU: those within a bound that is found by halving, sorted in a heap.

for each row:
  a key that enough elements of its first part reach, then one that just enough of all reach: between a key that enough
    elements reach and the largest one, count in lanes how many reach the middle, until they are as many as are wanted
  one after the other, the elements before that key, and as many that equal it as are wanted; a few neighbours without
    any are skipped together
  sort them in the result itself
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerType, i1, i64
from xdsl.ir import Attribute, SSAValue

from mlirt.dialects.fused.topk import ExtremeKind, TopkOp
from mlirt.dialects.kernel.core import ReduceKind
from mlirt.dialects.tensor_types import dims, element_of
from mlirt.kernels.lib.builder.kernel_builder import Stride
from mlirt.kernels.lib.language import Value, build, builder, kernel
from mlirt.kernels.lib.language.context import emit
from mlirt.kernels.lib.language.words import (
    Box,
    cast,
    ceil_div,
    clamp,
    constant,
    extent,
    index_of,
    integer_of,
    parallel,
    place,
    reduction,
)
from mlirt.kernels.lib.loops.loop_nest import NestCode
from mlirt.kernels.lib.loops.rows import rows, whole, without_axis
from mlirt.kernels.lib.tactics.lowering import Lowering
from mlirt.kernels.rows.row_order import comes_before, key, key_type
from mlirt.kernels.rows.row_shares import normalize

OPS = (TopkOp,)
TARGETS = frozenset({"cpu"})
PRIORITY = 10

# Fewer elements are picked one by one, and those of shorter rows compared with each other.
_MIN_SELECTED, _MIN_ROW = 16, 128
_MAX_LEVELS = 32
# The first part of a row: elements for each that is wanted, and the fewest.
_SAMPLE_RATIO, _SAMPLE = 4, 256
# Elements that are skipped together.
_GROUP = 16

# An element as it is stored, its key, and its place in the row.
_Entry = tuple[Value, Value, Value]


def lower(op: TopkOp, lowering: Lowering) -> bool:
    axis, space, count = op.axis.value.data, dims(op.input.type), op.count()
    length = space[axis]
    if (isinstance(count, int) and count < _MIN_SELECTED) or (isinstance(length, int) and length < _MIN_ROW):
        return False
    k = lowering.kernel("select")
    results = [without_axis(whole(value, lowering), axis) for value in (op.values, op.indices)]
    code, border = rows(k, space, axis, [whole(op.input, lowering), *results])
    build(k, _rows, op, code, border, [k.strides(value)[axis] for value in (op.values, op.indices)])
    k.finish(op)
    normalize(op, lowering)
    return True


@kernel
def _rows(op: TopkOp, code: NestCode, border: int, steps: Sequence[Stride]) -> None:
    (outer, (size,)), count = code.split(border), op.count()
    for loops in parallel(outer):
        row = _Row(op, code, code.loops_before(border, loops), steps, extent(size), extent(count))
        row.select()
        if op.sorted.value.data:
            row.sort(count.bit_length() if isinstance(count, int) else _MAX_LEVELS)


@dataclass(frozen=True, eq=False)
class _Row:
    """A row of the input, and where the elements that are selected from it go."""

    op: TopkOp
    code: NestCode
    here: Sequence[SSAValue]
    steps: Sequence[Stride]
    length: Value
    count: Value

    @property
    def element(self) -> Attribute:
        return element_of(self.op.input.type)

    @property
    def key_type(self) -> IntegerType:
        return key_type(self.element)

    def key_of(self, value: SSAValue) -> Value:
        """What an element is compared by."""
        return key(value, self.element, largest_first=self.op.kind.data is ExtremeKind.MAX)

    def key_at(self, at: SSAValue) -> Value:
        return self.key_of(self.code.load(0, [*self.here, at]))

    def lowest(self) -> Value:
        return constant(-(2 ** (self.key_type.width.data - 1)), self.key_type)

    @kernel
    def found(self, rank: Value) -> _Entry:
        """What the result holds at a rank, which is clamped: it follows from data."""
        near, of = clamp(rank, self.count), element_of(self.op.indices.type)
        value = self.code.load(1, self.here, [(near, self.steps[0])])
        position = cast(builder().ready(self.code.load(2, self.here, [(near, self.steps[1])])), of, i64)
        return value, self.key_of(value), index_of(position)

    @kernel
    def put(self, value: Value, at: Value, rank: Value) -> None:
        """Let an element, which is at a place of the row, have a rank."""
        near = clamp(rank, self.count)
        self.code.store(value, 1, self.here, [(near, self.steps[0])])
        position = integer_of(at, element_of(self.op.indices.type))
        self.code.store(position, 2, self.here, [(near, self.steps[1])])

    # The key that just enough elements reach.

    @kernel
    def reaching(self, bound: Value, length: Value, *, beyond: bool = False) -> Value:
        """How many of the first elements have a key that reaches a bound, or is beyond it."""

        def one(at: Value) -> Value:
            own = self.key_at(at)
            reaches = own > bound if beyond else own >= bound
            return cast(reaches, i1, self.key_type)  # pyright: ignore[reportArgumentType]

        return index_of(reduction(ReduceKind.ADD, Box(length), constant(0, self.key_type), one))

    @kernel
    def bound(self) -> Value:
        """A key that just enough elements reach, or the largest one that enough do."""
        some = max(self.count * _SAMPLE_RATIO, _SAMPLE)
        some = place(some if some * 2 < self.length else 0)
        return self.halved(self.halved(self.lowest(), some), self.length)

    @kernel
    def halved(self, low: Value, length: Value) -> Value:
        """The bound among the first elements, enough of which reach the key `low`; that key where there are none."""
        top = max(reduction(ReduceKind.MAX, Box(length), self.lowest(), self.key_at), low)
        for _ in range(extent(self.key_type.width.data)):
            distance = top - low
            half = emit(arith.ShRUIOp(distance, constant(1, self.key_type)))
            middle = low + (half + (distance & 1))
            found = self.count
            if low != top:
                found = self.reaching(middle, length)
            reached, fits = found >= self.count, found == self.count
            below = middle - 1
            lowered = (middle if fits else top) if reached else below
            low, top = middle if reached else low, lowered
        return low

    # The elements that reach it.

    @kernel
    def select(self) -> None:
        """Put the elements that belong to the result there, in the order of the row."""
        bound, step = self.bound(), self.code.step(0, len(self.here))
        rank, left = place(0), self.count - self.reaching(bound, self.length, beyond=True)
        for group in range(ceil_div(self.searched(), _GROUP)):
            start = place(group * _GROUP)
            length = min(self.length - start, _GROUP)

            def reaches(at: Value) -> bool:
                return self.key_of(self.code.load(0, self.here, [(start, step), (at, step)])) >= bound

            some = reduction(ReduceKind.OR, Box(length), constant(0, i1), reaches)
            for near in range(length if some else 0):
                at = place(start + near)
                value = self.code.load(0, [*self.here, at])
                own = self.key_of(value)
                is_tie = own == bound and left > 0
                is_taken = own > bound or is_tie
                if is_taken:
                    self.put(value, at, rank)
                rank, left = rank + (1 if is_taken else 0), left - (1 if is_tie else 0)

    @kernel
    def searched(self) -> Value:
        """The length of the row; 0 where no element is wanted, as the result has no place for one then."""
        return place(self.length if isinstance(self.op.count(), int) or 0 < self.count else 0)

    # The result as a heap, in which the last in order is on top.

    @kernel
    def sort(self, levels: int) -> None:
        """Sort the result in place."""
        half = self.count // 2
        for step in range(half):
            hole = half - step - 1
            self.sink(self.found(hole), hole, self.count, levels)
        for step in range(self.count - 1):
            end = self.count - step - 1
            last, (value, _, at) = self.found(end), self.found(place(0))
            self.put(value, at, end)
            self.sink(last, place(0), end, levels)

    @kernel
    def sink(self, entry: _Entry, hole: Value, end: Value, levels: int) -> None:
        """Put an entry where it belongs below a hole, in a heap of `end` entries."""
        last = end - 1
        for _ in range(extent(levels)):
            child = hole * 2 + 1
            places = min(child, last), min(child + 1, last)
            one, other = [self.found(place) for place in places]
            is_other = comes_before(one[1:], other[1:])
            value, own, at = [b if is_other else a for a, b in zip(one, other, strict=True)]
            moves = child < end and comes_before(entry[1:], (own, at))
            if moves:
                self.put(value, at, hole)
            hole = (places[1] if is_other else places[0]) if moves else hole
        self.put(entry[0], entry[2], hole)
