"""The kernels of a scan: of whole rows, or of parts of rows behind what the parts before them come to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from xdsl.dialects.builtin import IntegerAttr, i32, i64
from xdsl.ir import Attribute, SSAValue

from mlirt.dialects.fused.cumulative import CumulativeOp
from mlirt.dialects.fused.scalar_builder import compute_type, scalar_type
from mlirt.dialects.kernel.simt import WARP
from mlirt.dialects.running_totals import CumulativeKind
from mlirt.dialects.symbolic import ceil_div, product
from mlirt.dialects.tensor_types import byte_width, dims, element_of, is_float, is_float8
from mlirt.kernels.lib.builder.index_arithmetic import known
from mlirt.kernels.lib.cuda.tiles.alignment import is_multiple
from mlirt.kernels.lib.language import Index, Value, build, kernel, value_of
from mlirt.kernels.lib.language.simt_words import (
    Access,
    block_id,
    element_at,
    fragment,
    load_fragment,
    store_fragment,
    thread_id,
)
from mlirt.kernels.lib.language.words import cast, place, size, split, static_range
from mlirt.kernels.lib.language.words import ceil_div as ceil_div_of
from mlirt.kernels.lib.loops.rows import rows, whole
from mlirt.kernels.lib.tactics.lowering import Lowering
from mlirt.kernels.rows.cuda.team_exchange import TeamExchange, team_exchange
from mlirt.kernels.rows.running_totals import totals_of

_THREADS = 128  # of a block whose teams are warps or less


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


@dataclass(frozen=True)
class Team:
    """A thread's number in its team, whether the team has a row (None: yes), and where that starts in both tensors."""

    member: Value
    exists: bool | None
    starts: Sequence[Value]
    exchange: TeamExchange


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
        self.length = value_of(k.size(length))
        self.is_sum, self.backwards = op.kind.data is CumulativeKind.SUM, op.reverse.value.data
        self.memories = [k.bits(op.input), k.bits(op.output)]
        self.sums = None if sums is None else value_of(k.memory(sums, scalar_type(self.wide)))
        self.is_narrow = lowering.fits_int32((op.input, op.output))

    def write(self, *, only_sums: bool = False) -> None:
        """Write the results, or only what each part comes to."""
        k, plan = self.k, self.plan
        build(k, self._kernel, only_sums)
        if self.is_narrow:
            k.function.attributes["index_bits"] = IntegerAttr(32, i64)
        teams = plan.block // plan.team
        k.finish(self.op, grid=[ceil_div(product(self.outer), teams) * plan.parts, 1, 1], block=[plan.block])

    @kernel
    def _kernel(self, only_sums: bool) -> None:
        """Each team does a row, or a part of one."""
        plan, sums, thread, block = self.plan, self.sums, thread_id(), block_id()
        teams, count = plan.block // plan.team, product(self.outer)
        member = thread % plan.team if teams > 1 else thread
        row = block * teams + thread // plan.team if teams > 1 else block // plan.parts
        part = block % plan.parts
        exists = None if is_multiple(count, teams) else row < size("rows", count)
        starts = self._starts(row)
        exchange = team_exchange(member, plan.team, plan.vectors, totals_of(self.op, self.wide))
        before = exchange.neutral
        if sums is not None and not only_sums:
            earlier, at = exchange.neutral, row * plan.parts + member
            if member < part:
                earlier = sums[at]
            (before,) = exchange.of([earlier])[1]
        team = Team(member, exists, starts, exchange)
        total = self._steps(team, part, before, only_sums)
        if sums is not None and only_sums:
            at = row * plan.parts + part
            if member == 0:
                sums[at] = total

    def _starts(self, row: Value) -> list[Value]:
        """Where a row starts in both tensors."""
        indices = split(row, self.outer)
        return [self.code.linear(operand, indices) for operand in range(2)]

    @kernel
    def _steps(self, team: Team, part: Value, before: Value, only_sums: bool) -> Value:
        """Do a part of the row, which is all of it where it has one; returns all that came up to its end."""
        plan, length = self.plan, known(self.length)
        if length is not None and length <= plan.held:
            return self._step(team, 0, before, only_sums)
        start = part * (plan.steps * plan.held)
        if plan.steps == 1:
            return self._step(team, start, before, only_sums)
        for number in range(plan.steps or ceil_div_of(self.length, plan.held)):
            before = self._step(team, start + number * plan.held, before, only_sums)
        return before

    @kernel
    def _step(self, team: Team, first: Index, before: Value, only_sums: bool) -> Value:
        """Do what the team holds at a time, from an element of the row on; returns all that came up to its end."""
        plan = self.plan
        places = [first + (team.member + number * plan.team) * plan.vector for number in static_range(plan.vectors)]
        valid = [self._valid(team, at, number) for number, at in enumerate(places)]
        loaded = [self._load(team, at, count) for at, count in zip(places, valid, strict=True)]
        combine = team.exchange.combiner.of
        runs = [list(accumulate(elements, combine)) for elements in loaded]
        earlier, totals = team.exchange.of([run[-1] for run in runs])
        for at, count, run, left, total in zip(places, valid, runs, earlier, totals, strict=True):
            if not only_sums:
                start = combine(before, left)
                results = [combine(start, one) for one in run]
                self._store(team, [start, *results[:-1]] if self.op.exclusive.value.data else results, at, count)
            before = combine(before, total)
        return before

    # Memory.

    @kernel
    def _valid(self, team: Team, at: Value, number: int) -> Index | None:
        """How many elements of a vector are in the row (None: all)."""
        plan, length, count = self.plan, known(self.length), None
        surely = length is not None and length <= plan.held and (number + 1) * plan.team * plan.vector <= length
        if (length is None or length % plan.held != 0) and not surely:
            count = max(min(self.length - at, plan.vector), 0)
        if team.exists is not None:
            count = (plan.vector if count is None else count) if team.exists else 0
        return count

    @kernel
    def _access(self, team: Team, at: Value, operand: int, valid: Index | None) -> tuple[Value, Access]:
        """Where a vector starts in memory, and how its elements lie; only wide ones backwards are in their order."""
        plan, lanes = self.plan, static_range(self.plan.vector)
        if self.backwards and plan.is_wide:
            at = self.length - plan.vector - at
        elif self.backwards:
            at = self.length - 1 - at
        stride = place(-1) if self.backwards and not plan.is_wide else None
        return team.starts[operand] + at, Access(lanes, stride, valid, plan.is_wide)

    @kernel
    def _load(self, team: Team, at: Value, valid: Index | None) -> list[Value]:
        index, access = self._access(team, at, 0, valid)
        loaded = load_fragment(self.memories[0], index, access)
        order = reversed(access.offsets) if self.plan.is_wide and self.backwards else access.offsets
        elements = [cast(element_at(loaded, lane), self.element, self.wide) for lane in order]
        if self.is_sum or valid is None:
            return elements
        inside = [valid > lane for lane in access.offsets]
        return [element if one else team.exchange.neutral for one, element in zip(inside, elements, strict=True)]

    @kernel
    def _store(self, team: Team, results: Sequence[Value], at: Value, valid: Index | None) -> None:
        index, access = self._access(team, at, 1, valid)
        ordered = reversed(results) if self.plan.is_wide and self.backwards else results
        values = fragment([cast(one, self.wide, self.element) for one in ordered])
        store_fragment(values, self.memories[1], index, access)


def computed(element: Attribute) -> Attribute:
    """The type in which elements are combined: short integers in whole registers, which threads can exchange."""
    is_short = not is_float(element) and not is_float8(element) and byte_width(element) < byte_width(i32)
    return i32 if is_short else compute_type(element)


__all__ = ["Scan", "ScanKernel", "computed"]
