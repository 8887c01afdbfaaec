"""Running sums and products along neighbours in memory, on a GPU: a team of threads shares out each row.

for some vectors of the row {
  each thread: load its neighbours, combine them one after the other
  the threads of a warp exchange what theirs come to, then the warps of a block
  each thread: store its neighbours, each combined with all that is before it
}

Which elements are combined in which order depends on the length of the row alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import IntegerAttr, i32, i64
from xdsl.ir import Attribute, Operation, SSAValue

from mlirt.dialects.fused.cumulative import CumulativeKind, CumulativeOp
from mlirt.dialects.kernel.core import LoadOp, StoreOp
from mlirt.dialects.kernel.fragment import FragmentElementOp, FragmentOp, LoadFragmentOp, StoreFragmentOp
from mlirt.dialects.kernel.simt import WARP, BarrierOp, BlockIdOp, SharedOp, ShuffleOp, ThreadIdOp
from mlirt.dialects.symbolic import ceil_div, product
from mlirt.dialects.tensor_types import byte_width, dims, element_of, is_bool, is_float, is_float8, stored_bytes
from mlirt.dialects.typical_sizes import typical, typical_values
from mlirt.passes.lowering.index_arithmetic import known
from mlirt.passes.lowering.lowering import Lowering
from mlirt.passes.lowering.rows import rows, whole
from mlirt.passes.lowering.tiles.alignment import is_multiple, widest_access
from mlirt.passes.lowering.trt_to_fused.scalar_builder import compute_type, scalar_type

OPS = (CumulativeOp,)
TARGETS = frozenset({"cuda"})
PRIORITY = 10

_WIDE = 16  # bytes of a vector
_VECTORS = 4  # that a thread holds
_THREADS = 128  # of a block whose teams are warps or less
_MOST_THREADS, _THREADS_OF_ROW, _FEW_ROWS = 1024, 256, 512  # of a team, and with how many rows it may be the largest
_TOGETHER = 4  # threads that should read neighbours
_BUSY = 64 * 1024  # threads that a launch should have
_NARROW = 2**31


@dataclass(frozen=True)
class Scan:
    """How a row is shared out: vector `k` of member `m` of a team is the `k * team + m`-th of what the team holds."""

    team: int
    vector: int
    vectors: int
    is_wide: bool
    """Whether vectors lie in memory as one access needs it."""

    @property
    def block(self) -> int:
        return self.team if self.team > WARP else _THREADS

    @property
    def held(self) -> int:
        """Elements of a row that its team has at a time."""
        return self.team * self.vector * self.vectors


def lower(op: Operation, lowering: Lowering) -> bool:
    assert isinstance(op, CumulativeOp)
    found = _scan(op, lowering)
    if found is None:
        return False
    _Scanned(op, found, lowering).write()
    return True


def _scan(op: CumulativeOp, lowering: Lowering) -> Scan | None:
    """How the rows are shared out; None where they do not lie in memory as such."""
    element, axis, places = element_of(op.input.type), op.axis.value.data, lowering.placements
    both = [places[value].strides for value in (op.input, op.output)]
    length = dims(op.input.type)[axis]
    if any(steps[axis] != 1 for steps in both) or is_bool(element) or length == 1:
        return None
    others = [[*steps[:axis], *steps[axis + 1 :]] for steps in both]
    pairs = zip((op.input, op.output), others, strict=True)
    wide = min(widest_access(value, [*steps, length], lowering) for value, steps in pairs)
    is_wide = wide * byte_width(element) == _WIDE
    vector = _WIDE // byte_width(element)
    guesses = typical_values(lowering.block)
    columns = typical(length, guesses)
    count = typical(product(dims(op.input.type)), guesses) // columns
    team, most = 1, _MOST_THREADS if count < _FEW_ROWS else _THREADS_OF_ROW
    while (
        team < most
        and team * vector < columns
        and (team * vector * _VECTORS < columns or team < _TOGETHER or count * team < _BUSY)
    ):
        team *= 2
    vectors = min(_VECTORS, -(-columns // (team * vector)))
    return Scan(team, vector, vectors, is_wide)


class _Scanned:
    """The kernel of one op."""

    def __init__(self, op: CumulativeOp, plan: Scan, lowering: Lowering) -> None:
        self.op, self.plan = op, plan
        self.k = k = lowering.kernel("cumulative")
        self.element = element_of(op.input.type)
        self.wide = _computed(self.element)
        operands = [whole(op.input, lowering), whole(op.output, lowering)]
        self.code, border = rows(k, dims(op.input.type), op.axis.value.data, operands)
        self.outer, (length,) = self.code.split(border)
        self.length = k.size(length)
        self.is_static = known(self.length) is not None
        self.is_sum, self.backwards = op.kind.data is CumulativeKind.SUM, op.reverse.value.data
        self.neutral = k.constant(0 if self.is_sum else 1, scalar_type(self.wide))
        self.memories = [k.bits(op.input), k.bits(op.output)]
        sizes = [stored_bytes(value.type) for value in (op.input, op.output)]
        self.is_narrow = all(isinstance(size, int) and size < _NARROW for size in sizes)

    def write(self) -> None:
        k, plan = self.k, self.plan
        thread, block = k.value(ThreadIdOp()), k.value(BlockIdOp())
        thread.name_hint, block.name_hint = "thread", "block"
        teams, count = plan.block // plan.team, product(self.outer)
        self.member = k.rem(thread, plan.team) if teams > 1 else thread
        row = k.add(k.mul(block, teams), k.div(thread, plan.team)) if teams > 1 else block
        self.exists = None if is_multiple(count, teams) else k.compare("slt", row, k.size(count))
        indices = k.split(row, [k.size(size) for size in self.outer])
        self.starts = [self.code.linear(operand, indices) for operand in range(2)]
        if plan.team > WARP:
            self.lane, self.warp = k.rem(thread, WARP), k.div(thread, WARP)
            self.totals = k.value(SharedOp(plan.vectors * (plan.team // WARP), scalar_type(self.wide)))
        length = known(self.length)
        if length is not None and length <= plan.held:
            self._part(k.constant(0), self.neutral)
        else:
            steps = k.ceil_div(self.length, plan.held)
            k.loop(steps, [self.neutral], lambda step, before: [self._part(k.mul(step, plan.held), before[0])])
        if self.is_narrow:
            k.function.attributes["index_bits"] = IntegerAttr(32, i64)
        k.finish(self.op, grid=[ceil_div(count, teams), 1, 1], block=[plan.block])

    def _part(self, first: SSAValue, before: SSAValue) -> SSAValue:
        """Do what the team holds at a time, from an element of the row on; returns all that came up to its end."""
        k, plan, vectors = self.k, self.plan, range(self.plan.vectors)
        places = [k.add(first, k.mul(k.add(self.member, number * plan.team), plan.vector)) for number in vectors]
        valid = [self._valid(place, number) for number, place in enumerate(places)]
        loaded = [self._load(place, count) for place, count in zip(places, valid, strict=True)]
        runs = [self._run(elements) for elements in loaded]
        earlier, totals = self._exchanged([run[-1] for run in runs])
        for place, count, run, left, total in zip(places, valid, runs, earlier, totals, strict=True):
            start = self._combine(before, left)
            results = [self._combine(start, one) for one in run]
            self._store([start, *results[:-1]] if self.op.exclusive.value.data else results, place, count)
            before = self._combine(before, total)
        return before

    def _combine(self, a: SSAValue, b: SSAValue) -> SSAValue:
        s = self.k.scalars(self.wide)
        if self.neutral in (a, b):
            return b if a is self.neutral else a
        return s.add(a, b) if self.is_sum else s.mul(a, b)

    def _run(self, elements: Sequence[SSAValue]) -> list[SSAValue]:
        """Each element combined with those before it in the vector."""
        run = [elements[0]]
        for element in elements[1:]:
            run.append(self._combine(run[-1], element))
        return run

    def _exchanged(self, own: Sequence[SSAValue]) -> tuple[list[SSAValue], list[SSAValue]]:
        """For each vector of a thread what those of the team before it come to, and what those of all come to."""
        k, plan = self.k, self.plan
        earlier, totals = self._in_warp(own, self.member, min(plan.team, WARP))
        if plan.team <= WARP:
            return earlier, totals
        warps, neutral = plan.team // WARP, self.neutral
        places = [k.add(number * warps, self.warp) for number in range(plan.vectors)]

        def put(values: Sequence[SSAValue]) -> None:
            for place, value in zip(places, values, strict=True):
                k.insert(StoreOp(value, self.totals, [place], [1]))

        k.when(k.compare("eq", self.lane, 0), lambda: put(totals))
        k.insert(BarrierOp())
        inside = k.compare("slt", self.lane, warps)
        found = [
            k.guarded(inside, lambda number=number: self._total(k.add(number * warps, self.lane)), neutral)
            for number in range(plan.vectors)
        ]
        # Every warp does the same for all warps, and picks what is before itself.
        left, all_of_them = self._in_warp(found, self.lane, WARP)
        k.insert(BarrierOp())

        def keep() -> None:
            for number, value in enumerate(left):
                k.insert(StoreOp(value, self.totals, [k.add(number * warps, self.lane)], [1]))

        first = k.both(inside, k.compare("eq", self.warp, 0))
        assert first is not None
        k.when(first, keep)
        k.insert(BarrierOp())
        before = [self._total(place) for place in places]
        k.insert(BarrierOp())
        return [self._combine(a, b) for a, b in zip(before, earlier, strict=True)], all_of_them

    def _total(self, place: SSAValue) -> SSAValue:
        return self.k.value(LoadOp(self.totals, [place], [1]))

    def _in_warp(self, own: Sequence[SSAValue], member: SSAValue, size: int) -> tuple[list[SSAValue], list[SSAValue]]:
        """As `_exchanged`, among `size` threads of a warp: pairs first, then pairs of pairs."""
        k, earlier, totals, step = self.k, [self.neutral] * len(own), list(own), 1
        while step < size:
            is_right = k.compare("ne", k.rem(k.div(member, step), 2), 0)
            for number, total in enumerate(totals):
                other = k.value(ShuffleOp(total, step))
                left = self._combine(other, earlier[number])
                earlier[number] = k.select(is_right, left, earlier[number])
                totals[number] = self._combine(total, other)
            step *= 2
        return earlier, totals

    # Memory.

    def _valid(self, place: SSAValue, number: int) -> SSAValue | None:
        """How many elements of a vector are in the row (None: all)."""
        k, plan, length = self.k, self.plan, known(self.length)
        count = None
        if length is None or length % plan.held:
            surely = length is not None and length <= plan.held and (number + 1) * plan.team * plan.vector <= length
            if not surely:
                left = k.sub(self.length, place)
                count = k.max(k.min(left, plan.vector), 0)
        if self.exists is None:
            return count
        return k.select(self.exists, plan.vector if count is None else count, 0)

    def _access(self, place: SSAValue, operand: int) -> tuple[SSAValue, SSAValue | None]:
        """Where a vector starts in memory, and the step between its elements where they do not follow each other."""
        k, plan, start = self.k, self.plan, self.starts[operand]
        if not self.backwards:
            return k.add(start, place), None
        if plan.is_wide:
            return k.add(start, k.sub(k.sub(self.length, plan.vector), place)), None
        return k.add(start, k.sub(k.sub(self.length, 1), place)), k.constant(-1)

    def _load(self, place: SSAValue, valid: SSAValue | None) -> list[SSAValue]:
        k, lanes, s = self.k, range(self.plan.vector), self.k.scalars(self.wide)
        index, stride = self._access(place, 0)
        is_wide = self.plan.is_wide
        read = LoadFragmentOp(self.memories[0], index, lanes, stride=stride, valid=valid, wide=is_wide)
        loaded = k.value(read)
        order = reversed(lanes) if is_wide and self.backwards else lanes
        elements = [s.cast(k.value(FragmentElementOp(loaded, lane)), self.element) for lane in order]
        if self.is_sum or valid is None:
            return elements
        inside = [k.compare("sgt", valid, lane) for lane in lanes]
        return [k.select(one, element, self.neutral) for one, element in zip(inside, elements, strict=True)]

    def _store(self, results: Sequence[SSAValue], place: SSAValue, valid: SSAValue | None) -> None:
        k, s, is_wide = self.k, self.k.scalars(self.element), self.plan.is_wide
        index, stride = self._access(place, 1)
        ordered = reversed(results) if is_wide and self.backwards else results
        values = k.value(FragmentOp([s.cast(one, self.wide) for one in ordered]))
        lanes = range(self.plan.vector)
        k.insert(StoreFragmentOp(values, self.memories[1], index, lanes, stride=stride, valid=valid, wide=is_wide))


def _computed(element: Attribute) -> Attribute:
    """The type in which elements are combined: short integers in whole registers, which threads can exchange."""
    is_short = not is_float(element) and not is_float8(element) and byte_width(element) < byte_width(i32)
    return i32 if is_short else compute_type(element)


__all__ = ["lower"]
