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

from xdsl.dialects import arith
from xdsl.dialects.builtin import i1, i64
from xdsl.ir import SSAValue

from mlirt.dialects.fused.arg_reduction import ExtremeKind
from mlirt.dialects.fused.topk import TopkOp
from mlirt.dialects.kernel.core import ReduceKind
from mlirt.dialects.tensor_types import dims, element_of
from mlirt.kernels.lib.builder.kernel_builder import KernelBuilder, Stride
from mlirt.kernels.lib.language import build
from mlirt.kernels.lib.loops.loop_nest import NestCode
from mlirt.kernels.lib.loops.rows import rows, whole, without_axis
from mlirt.kernels.lib.tactics.lowering import Lowering
from mlirt.kernels.topk.row_order import comes_before, key, key_type
from mlirt.kernels.topk.row_shares import normalize

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
_Entry = tuple[SSAValue, SSAValue, SSAValue]


def lower(op: TopkOp, lowering: Lowering) -> bool:
    axis, space, count = op.axis.value.data, dims(op.input.type), op.count()
    length = space[axis]
    if (isinstance(count, int) and count < _MIN_SELECTED) or (isinstance(length, int) and length < _MIN_ROW):
        return False
    k = lowering.kernel("select")
    results = [without_axis(whole(value, lowering), axis) for value in (op.values, op.indices)]
    code, border = rows(k, space, axis, [whole(op.input, lowering), *results])
    outer, (extent,) = code.split(border)
    steps = [k.strides(value)[axis] for value in (op.values, op.indices)]
    with k.parallel(outer) as loops:
        row = _Row(k, op, code, code.loops_before(border, loops), k.extent(extent), steps)
        row.select()
        if op.sorted.value.data:
            _Heap(row, count.bit_length() if isinstance(count, int) else _MAX_LEVELS).sort()
    k.finish(op)
    normalize(op, lowering)
    return True


class _Row:
    """A row of the input and what is found of it."""

    def __init__(
        self,
        k: KernelBuilder,
        op: TopkOp,
        code: NestCode,
        here: Sequence[SSAValue],
        length: SSAValue,
        steps: Sequence[Stride],
    ) -> None:
        self.k, self._code, self._here, self._steps = k, code, here, steps
        self.length, self._wanted = length, op.count()
        self.count = k.size(self._wanted)
        self._element, self._place_type = element_of(op.input.type), element_of(op.indices.type)
        self._largest_first = op.kind.data is ExtremeKind.MAX
        self._key_type = key_type(self._element)
        self._step = code.step(0, len(here))

    def _key(self, value: SSAValue) -> SSAValue:
        return build(self.k, key, value, self._element, largest_first=self._largest_first)

    def _own_key(self, place: SSAValue) -> SSAValue:
        return self._key(self._code.load(0, [*self._here, place]))

    def found(self, rank: SSAValue) -> _Entry:
        """What the result holds at a rank, which is clamped: it follows from data."""
        rank = self.k.clamp(rank, self.count)
        value = self._code.load(1, self._here, [(rank, self._steps[0])])
        place = self._code.load(2, self._here, [(rank, self._steps[1])])
        whole_place = self.k.scalars(i64).cast(self.k.ready(place), self._place_type)
        return value, self._key(value), self.k.from_integer(whole_place)

    def put(self, value: SSAValue, place: SSAValue, rank: SSAValue) -> None:
        rank = self.k.clamp(rank, self.count)
        self._code.store(value, 1, self._here, [(rank, self._steps[0])])
        position = self.k.to_integer(place, self._place_type)
        self._code.store(position, 2, self._here, [(rank, self._steps[1])])

    def _reaching(self, bound: SSAValue, predicate: str, length: SSAValue) -> SSAValue:
        """How many of the first elements have a key beyond a bound."""
        k = self.k

        def one(at: list[SSAValue]) -> SSAValue:
            return k.value(arith.ExtUIOp(k.compare(predicate, self._own_key(at[0]), bound), self._key_type))

        zero = k.constant(0, self._key_type)
        return k.from_integer(k.reduce(ReduceKind.ADD, [length], zero, one))

    def _largest(self, length: SSAValue) -> SSAValue:
        """The largest key of the first elements."""
        k = self.k
        return k.reduce(ReduceKind.MAX, [length], self._lowest(), lambda at: self._own_key(at[0]))

    def _lowest(self) -> SSAValue:
        return self.k.constant(-(2 ** (self._key_type.width.data - 1)), self._key_type)

    def _bound(self) -> SSAValue:
        """A key that just enough elements reach, or the largest one that enough do."""
        k = self.k
        some = k.max(k.mul(self.count, _SAMPLE_RATIO), _SAMPLE)
        some = k.select(k.compare("slt", k.mul(some, 2), self.length), some, 0)
        return self._halved(self._halved(self._lowest(), some), self.length)

    def _halved(self, low: SSAValue, length: SSAValue) -> SSAValue:
        """The bound among the first elements, enough of which reach the key `low`; that key where there are none."""
        k, type_ = self.k, self._key_type
        one = k.constant(1, type_)

        def decide(_: SSAValue, carried: list[SSAValue]) -> list[SSAValue]:
            low, high = carried
            distance = k.value(arith.SubiOp(high, low))
            half = k.value(arith.ShRUIOp(distance, one))
            half = k.value(arith.AddiOp(half, k.value(arith.AndIOp(distance, one))))
            middle = k.value(arith.AddiOp(low, half))
            found = k.guarded(k.compare("ne", low, high), lambda: self._reaching(middle, "sge", length), self.count)
            reached, fits = k.compare("sge", found, self.count), k.compare("eq", found, self.count)
            below = k.value(arith.SubiOp(middle, one))
            high = k.value(arith.SelectOp(reached, k.value(arith.SelectOp(fits, middle, high)), below))
            return [k.value(arith.SelectOp(reached, middle, low)), high]

        largest = k.value(arith.MaxSIOp(self._largest(length), low))
        low, _ = k.loop(type_.width.data, [low, largest], decide)
        return low

    def select(self) -> None:
        """Put the elements that belong to the result there, in the order of the row."""
        k, bound = self.k, self._bound()
        equal = k.sub(self.count, self._reaching(bound, "sgt", self.length))

        def take(place: SSAValue, carried: list[SSAValue]) -> list[SSAValue]:
            rank, left = carried
            value = self._code.load(0, [*self._here, place])
            own = self._key(value)
            ties = k.value(arith.AndIOp(k.compare("eq", own, bound), k.compare("sgt", left, 0)))
            taken = k.value(arith.OrIOp(k.compare("sgt", own, bound), ties))
            k.when(taken, lambda: self.put(value, place, rank))
            return [k.add(rank, k.select(taken, 1, 0)), k.sub(left, k.select(ties, 1, 0))]

        def group(number: SSAValue, carried: list[SSAValue]) -> list[SSAValue]:
            start = k.mul(number, _GROUP)
            length = k.min(k.sub(self.length, start), _GROUP)

            def reaches(at: list[SSAValue]) -> SSAValue:
                own = self._key(self._code.load(0, self._here, [(start, self._step), (at[0], self._step)]))
                return k.compare("sge", own, bound)

            some = k.reduce(ReduceKind.OR, [length], k.constant(0, i1), reaches)
            count = k.select(some, length, 0)
            return k.loop(count, carried, lambda place, state: take(k.add(start, place), state))

        k.loop(k.ceil_div(self._searched(), _GROUP), [k.constant(0), equal], group)

    def _searched(self) -> SSAValue:
        """The length of the row; 0 where no element is wanted, as the result has no place for one then."""
        if isinstance(self._wanted, int):
            return self.length
        return self.k.select(self.k.compare("slt", self.k.constant(0), self.count), self.length, 0)


class _Heap:
    """Sorts a result in place; the last in order is on top of the heap."""

    def __init__(self, row: _Row, levels: int) -> None:
        self._row, self._k, self._levels = row, row.k, levels

    def sort(self) -> None:
        k, row = self._k, self._row
        half = k.div(row.count, 2)

        def build(step: SSAValue, _: list[SSAValue]) -> list[SSAValue]:
            hole = k.sub(k.sub(half, step), 1)
            self._sink(row.found(hole), hole, row.count)
            return []

        def shrink(step: SSAValue, _: list[SSAValue]) -> list[SSAValue]:
            end = k.sub(k.sub(row.count, step), 1)
            last, (value, _key, place) = row.found(end), row.found(k.constant(0))
            row.put(value, place, end)
            self._sink(last, k.constant(0), end)
            return []

        k.loop(half, [], build)
        k.loop(k.sub(row.count, 1), [], shrink)

    def _sink(self, entry: _Entry, hole: SSAValue, end: SSAValue) -> None:
        """Put an entry where it belongs below a hole, in a heap of `end` entries."""
        k, row, last = self._k, self._row, self._k.sub(end, 1)

        def level(_: SSAValue, carried: list[SSAValue]) -> list[SSAValue]:
            child = k.add(k.mul(carried[0], 2), 1)
            places = k.min(child, last), k.min(k.add(child, 1), last)
            one, other = (row.found(place) for place in places)
            is_other = build(k, comes_before, one[1:], other[1:])
            value, own, place = (k.value(arith.SelectOp(is_other, b, a)) for a, b in zip(one, other, strict=True))
            exists = k.compare("slt", child, end)
            moves = k.value(arith.AndIOp(exists, build(k, comes_before, entry[1:], (own, place))))
            k.when(moves, lambda: row.put(value, place, carried[0]))
            return [k.select(moves, k.select(is_other, places[1], places[0]), carried[0])]

        (hole,) = k.loop(self._levels, [hole], level)
        row.put(entry[0], entry[2], hole)
