"""The kernels of a scan: of whole rows, or of parts of rows behind what the parts before them come to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import IntegerAttr, i32, i64
from xdsl.ir import Attribute, SSAValue

from mlirt.dialects.fused.cumulative import CumulativeOp
from mlirt.dialects.kernel.core import LoadOp, StoreOp
from mlirt.dialects.kernel.fragment import FragmentElementOp, FragmentOp, LoadFragmentOp, StoreFragmentOp
from mlirt.dialects.kernel.simt import WARP, BlockIdOp, ThreadIdOp
from mlirt.dialects.running_totals import CumulativeKind
from mlirt.dialects.symbolic import ceil_div, product
from mlirt.dialects.tensor_types import byte_width, dims, element_of, is_float, is_float8, stored_bytes
from mlirt.passes.lowering.cumulative.team_exchange import TeamExchange
from mlirt.passes.lowering.index_arithmetic import known
from mlirt.passes.lowering.loops.rows import rows, whole
from mlirt.passes.lowering.lowering import Lowering
from mlirt.passes.lowering.tiles.alignment import is_multiple
from mlirt.passes.lowering.trt_to_fused.scalar_builder import compute_type, scalar_type

_THREADS = 128  # of a block whose teams are warps or less
_NARROW = 2**31


@dataclass(frozen=True)
class Scan:
    """How a row is shared out: vector `k` of member `m` of a team is the `k * team + m`-th of what the team holds.

    A row has `parts` of a team each, which hold their elements in `steps`; 0 steps are as many as it takes.
    """

    team: int
    vector: int
    vectors: int
    is_wide: bool
    """Whether vectors lie in memory as one access needs it."""
    parts: int = 1
    steps: int = 0

    @property
    def block(self) -> int:
        return self.team if self.team > WARP else _THREADS

    @property
    def held(self) -> int:
        """Elements of a row that its team has at a time."""
        return self.team * self.vector * self.vectors


class ScanKernel:
    """One of the kernels of an op, which reads or writes in `sums` what each part of a row comes to."""

    def __init__(self, op: CumulativeOp, plan: Scan, lowering: Lowering, sums: SSAValue | None = None) -> None:
        self.op, self.plan = op, plan
        self.k = k = lowering.kernel("cumulative")
        self.element = element_of(op.input.type)
        self.wide = computed(self.element)
        operands = [whole(op.input, lowering), whole(op.output, lowering)]
        self.code, border = rows(k, dims(op.input.type), op.axis.value.data, operands)
        self.outer, (length,) = self.code.split(border)
        self.length = k.size(length)
        self.is_sum, self.backwards = op.kind.data is CumulativeKind.SUM, op.reverse.value.data
        self.neutral = k.constant(0 if self.is_sum else 1, scalar_type(self.wide))
        self.memories = [k.bits(op.input), k.bits(op.output)]
        self.sums = None if sums is None else k.memory(sums, scalar_type(self.wide))
        sizes = [stored_bytes(value.type) for value in (op.input, op.output)]
        self.is_narrow = all(isinstance(size, int) and size < _NARROW for size in sizes)

    def write(self, *, only_sums: bool = False) -> None:
        """Write the results, or only what each part comes to."""
        k, plan = self.k, self.plan
        thread, block = k.value(ThreadIdOp()), k.value(BlockIdOp())
        thread.name_hint, block.name_hint = "thread", "block"
        teams, count = plan.block // plan.team, product(self.outer)
        self.member = k.rem(thread, plan.team) if teams > 1 else thread
        row = k.add(k.mul(block, teams), k.div(thread, plan.team)) if teams > 1 else k.div(block, plan.parts)
        part = k.rem(block, plan.parts)
        self.exists = None if is_multiple(count, teams) else k.compare("slt", row, k.size(count))
        indices = k.split(row, [k.size(size) for size in self.outer])
        self.starts = [self.code.linear(operand, indices) for operand in range(2)]
        self.exchange = TeamExchange(k, self.member, plan.team, plan.vectors, self._combine, self.neutral)
        before = self.neutral
        if self.sums is not None and not only_sums:
            place = k.add(k.mul(row, plan.parts), self.member)
            inside = k.compare("slt", self.member, part)
            (before,) = self.exchange.of([k.guarded(inside, lambda: self._sum(place), self.neutral)])[1]
        total = self._steps(part, before, only_sums)
        if only_sums:
            place = k.add(k.mul(row, plan.parts), part)
            first = k.compare("eq", self.member, 0)
            k.when(first, lambda: self._put_sum(total, place))
        if self.is_narrow:
            k.function.attributes["index_bits"] = IntegerAttr(32, i64)
        k.finish(self.op, grid=[ceil_div(count, teams) * plan.parts, 1, 1], block=[plan.block])

    def _sum(self, place: SSAValue) -> SSAValue:
        assert self.sums is not None
        return self.k.value(LoadOp(self.sums, [place], [1]))

    def _put_sum(self, total: SSAValue, place: SSAValue) -> None:
        assert self.sums is not None
        self.k.insert(StoreOp(total, self.sums, [place], [1]))

    def _steps(self, part: SSAValue, before: SSAValue, only_sums: bool) -> SSAValue:
        """Do a part of the row, which is all of it where it has one; returns all that came up to its end."""
        k, plan, length = self.k, self.plan, known(self.length)
        if length is not None and length <= plan.held:
            return self._step(k.constant(0), before, only_sums)
        start = k.mul(part, plan.steps * plan.held)
        steps = k.constant(plan.steps) if plan.steps else k.ceil_div(self.length, plan.held)
        if plan.steps == 1:
            return self._step(start, before, only_sums)

        def step(number: SSAValue, carried: list[SSAValue]) -> list[SSAValue]:
            return [self._step(k.add(start, k.mul(number, plan.held)), carried[0], only_sums)]

        return k.loop(steps, [before], step)[0]

    def _step(self, first: SSAValue, before: SSAValue, only_sums: bool) -> SSAValue:
        """Do what the team holds at a time, from an element of the row on; returns all that came up to its end."""
        k, plan, vectors = self.k, self.plan, range(self.plan.vectors)
        places = [k.add(first, k.mul(k.add(self.member, number * plan.team), plan.vector)) for number in vectors]
        valid = [self._valid(place, number) for number, place in enumerate(places)]
        loaded = [self._load(place, count) for place, count in zip(places, valid, strict=True)]
        runs = [self._run(elements) for elements in loaded]
        earlier, totals = self.exchange.of([run[-1] for run in runs])
        for place, count, run, left, total in zip(places, valid, runs, earlier, totals, strict=True):
            if not only_sums:
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


def computed(element: Attribute) -> Attribute:
    """The type in which elements are combined: short integers in whole registers, which threads can exchange."""
    is_short = not is_float(element) and not is_float8(element) and byte_width(element) < byte_width(i32)
    return i32 if is_short else compute_type(element)


__all__ = ["Scan", "ScanKernel", "computed"]
