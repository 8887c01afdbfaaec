"""Follows the index arithmetic of a kernel through loops and branches, and collects what it reads and writes."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from xdsl.dialects import scf
from xdsl.dialects.builtin import MemRefType, NoneAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue

from mlirt.builder.extents.comparisons import known_where
from mlirt.builder.extents.index_values import ONE, ZERO, IndexValues
from mlirt.builder.extents.integer_types import is_integer, largest
from mlirt.builder.extents.numbers import MAX_NUMBER, Numbers
from mlirt.builder.extents.polynomials import Polynomial
from mlirt.builder.extents.ranges import Effort
from mlirt.builder.extents.touched import Factor, Guarded, Touched, touched_by
from mlirt.builder.extents.unknowns import Facts, Side
from mlirt.dialects.kernel.core import FuncOp, ParallelOp, ReduceKind, ReduceOp
from mlirt.dialects.kernel.tile import TileForEachOp, tile_shape
from mlirt.dialects.kernel.tile_pooling import TileMapOp


@dataclass(frozen=True)
class Access:
    """Elements of a buffer from `low` to `high` (numbers, or None: unknown), where all `guards` are at least 0."""

    buffer: SSAValue
    low: int | None
    high: int | None
    guards: frozenset[int]


@dataclass(frozen=True)
class Condition:
    """A number that must be at least 0 where `guards` are, for what was derived to hold."""

    number: int | None
    guards: frozenset[int]


def grid_conditions(numbers: Numbers, axis: int, count: int) -> list[Condition]:
    """That there are so many blocks along an axis."""
    given = numbers.grid(axis)
    more = numbers.add(given, numbers.constant(-count))
    fewer = numbers.add(numbers.constant(count), numbers.multiply(numbers.constant(-1), given))
    return [Condition(one, frozenset()) for one in (more, fewer)]


NOTHING_KNOWN: Mapping[int, int] = {}
FULL_EFFORT = Effort()


class KernelReader(IndexValues):
    """One walk over a kernel; `signed` are the places of integer arguments that may be negative.

    `constants` are those of which the value is known; `grid` says how many blocks there are along an axis, where that
    is known; `effort` is how long bounds are looked for: with less they may be wider than they need be.
    """

    def __init__(
        self,
        kernel: FuncOp,
        signed: frozenset[int] = frozenset(),
        constants: Mapping[int, int] = NOTHING_KNOWN,
        grid: Mapping[int, int] = NOTHING_KNOWN,
        effort: Effort = FULL_EFFORT,
    ) -> None:
        super().__init__(kernel)
        self.ranges.effort = effort
        self.kernel, self.signed, self.constants, self._grid = kernel, signed, constants, grid
        self.accesses: list[Access] = []
        self.conditions: list[Condition] = []
        self._facts: Facts = ()
        self._guards: frozenset[int] = frozenset()
        self._is_rehearsal = 0
        for place, argument in enumerate(kernel.body.block.args):
            if place in constants:
                self.values[argument] = Polynomial.constant(constants[place])
            elif is_integer(argument.type):
                number = self.ranges.numbers.argument(place)
                self.values[argument] = self.ranges.given(number, is_natural=place not in signed)
        self._walk(kernel.body.block)
        for divisor, guards in self.ranges.divisors.values():
            self.conditions.append(Condition(self.ranges.least(divisor.plus(-1)), guards))

    # Control.

    @contextmanager
    def _where(self, facts: Facts = (), guards: Sequence[int | None] = ()) -> Generator[None]:
        before = self._facts, self._guards
        self._facts += self.ranges.followed(facts)
        self._guards |= {one for one in guards if one is not None}
        self.ranges.facts, self.ranges.guards = self._facts, self._guards
        yield
        self._facts, self._guards = before
        self.ranges.facts, self.ranges.guards = before

    def _walk(self, block: Block) -> None:
        for op in block.ops:
            self._visit(op)

    def _visit(self, op: Operation) -> None:
        if isinstance(op, scf.ForOp):
            self._for(op)
        elif isinstance(op, scf.IfOp):
            self._if(op)
        elif isinstance(op, ParallelOp | ReduceOp):
            self._box(op)
        elif isinstance(op, TileForEachOp | TileMapOp):
            self._each(op)
        elif self.follow(op):
            pass
        elif op.regions:
            self._unknown_regions(op)
        self._record(op)

    def _unknown_regions(self, op: Operation) -> None:
        """Whatever the arguments of its regions are."""
        for region in op.regions:
            for block in region.blocks:
                self._walk(block)

    def _box(self, op: ParallelOp | ReduceOp) -> None:
        lasts = [self.value(extent).plus(-1) for extent in op.extents]
        for index, last in zip(op.body.block.args, lasts, strict=True):
            self.values[index] = self.ranges.varying(ZERO, last)
        facts = tuple(last for last in lasts if not self.ranges.is_given(last))
        with self._where(facts=facts, guards=[self.ranges.most(last, self._facts) for last in lasts]):
            self._walk(op.body.block)
            if isinstance(op, ReduceOp):
                self._reduced(op, lasts)

    def _reduced(self, op: ReduceOp, lasts: Sequence[Polynomial]) -> None:
        """The result of a reduction of integers, from what each element gives."""
        yielded = op.body.block.last_op
        assert yielded is not None
        if not is_integer(op.result.type):
            return
        init, each = self.value(op.init), self.value(yielded.operands[0])
        if op.kind.data in (ReduceKind.MAX, ReduceKind.MIN):
            self.values[op.result] = self.ranges.one_of([(init, ()), (each, ())])
        elif op.kind.data is ReduceKind.ADD and all(map(self.ranges.is_given, (init, *lasts))):
            self._summed(op, init, each, lasts)

    def _summed(self, op: ReduceOp, init: Polynomial, each: Polynomial, lasts: Sequence[Polynomial]) -> None:
        least, most = self.ranges.least(each, self._facts), self.ranges.most(each, self._facts)
        if least is None or most is None or self.ranges.numbers.value(least) not in (0, 1):
            return
        count = ONE
        for last in lasts:
            count = count * self.ranges.extreme(True, [last.plus(1), ZERO])
        high = init + count * self.ranges.given(most)
        if largest(op.result.type) < MAX_NUMBER:
            self.require(high.scaled(-1).plus(largest(op.result.type)))  # it does not wrap
        self.values[op.result] = self.ranges.varying(init, high)

    def _for(self, op: scf.ForOp) -> None:
        start, end, step = (self.value(one) for one in (op.lb, op.ub, op.step))
        last = self.ranges.floor_quotient((end - start).plus(-1), step)
        self.require(step.plus(-1))
        body = op.body.block
        carried = [
            (own, given, result)
            for own, given, result in zip(body.args[1:], op.iter_args, op.results, strict=True)
            if is_integer(own.type)
        ]
        guards = [self.ranges.most(last, self._facts)]
        with self._where(facts=self._runs(start, end), guards=guards):
            steps = self._steps_of_carried(body, carried, start, step, last)
        iteration = self.ranges.varying(ZERO, last)
        self.values[body.args[0]] = start + step * iteration
        for (own, given, result), (delta, alternatives) in zip(carried, steps, strict=True):
            if delta is not None:
                self.values[own] = self.value(given) + delta * iteration
                done = self.ranges.extreme(True, [last.plus(1), ZERO])
                self.values[result] = self.value(given) + delta * done
            elif alternatives is not None:
                self.values[own] = self.ranges.one_of([(self.value(given), ()), *alternatives])
                self.values[result] = self.values[own]
        with self._where(facts=self._runs(start, end), guards=guards):
            self._walk(body)

    def _runs(self, start: Polynomial, end: Polynomial) -> Facts:
        """What holds where a loop has an iteration."""
        length = (end - start).plus(-1)
        return () if self.ranges.is_given(length) else (length,)

    def _steps_of_carried(
        self,
        body: Block,
        carried: Sequence[tuple[SSAValue, SSAValue, SSAValue]],
        start: Polynomial,
        step: Polynomial,
        last: Polynomial,
    ) -> list[tuple[Polynomial | None, list[tuple[Polynomial, Facts]] | None]]:
        """For each number that a loop carries what an iteration adds to it, or what it may become instead."""
        if not carried:
            return []
        before = len(self.ranges.unknowns)
        own = [self.ranges.varying(None, None) for _ in carried]
        self.values[body.args[0]] = start + step * self.ranges.varying(ZERO, last)
        for (argument, _, _), expression in zip(carried, own, strict=True):
            self.values[argument] = expression
        kept = dict(self.values)
        self._is_rehearsal += 1
        self._walk(body)
        self._is_rehearsal -= 1
        yielded = body.last_op
        assert isinstance(yielded, scf.YieldOp)
        found: list[tuple[Polynomial | None, list[tuple[Polynomial, Facts]] | None]] = []
        for (argument, _, _), expression in zip(carried, own, strict=True):
            after = self.value(yielded.operands[list[SSAValue](body.args).index(argument) - 1])
            delta = after - expression
            if all(one < before or self.ranges.unknowns[one].number is not None for one in delta.unknowns):
                found.append((delta, None))
            else:
                found.append((None, self._alternatives(after, expression, before, 0)))
        self.values = kept
        return found

    def _alternatives(
        self, after: Polynomial, own: Polynomial, before: int, depth: int
    ) -> list[tuple[Polynomial, Facts]] | None:
        """What a carried number may be after an iteration, besides what it was; None where that follows from it."""
        if after.key == own.key:
            return []
        (number,) = own.unknowns
        if number not in after.unknowns and not self._leads_to(after, number):
            return [(after, ())]
        if depth > 4 or len(after.terms) != 1 or len(after.unknowns) != 1 or next(iter(after.terms.values())) != 1:
            return None
        (unknown,) = after.unknowns
        some = self.ranges.unknowns[unknown].high.some
        if not some or self.ranges.unknowns[unknown].low.some != some:
            return None
        found: list[tuple[Polynomial, Facts]] = []
        for one, facts in some:
            deeper = self._alternatives(one, own, before, depth + 1)
            if deeper is None:
                return None
            # Facts about the number itself are of the rehearsal alone.
            found += [(each, tuple(f for f in (*facts, *more) if number not in f.unknowns)) for each, more in deeper]
        return found

    def _leads_to(self, expression: Polynomial, number: int) -> bool:
        """Whether the bounds of an expression follow from an unknown."""
        seen: set[int] = set()
        todo = set(expression.unknowns)
        while todo:
            one = todo.pop()
            if one == number:
                return True
            if one in seen:
                continue
            seen.add(one)
            unknown = self.ranges.unknowns[one]
            parts = [part for side in (unknown.low, unknown.high) for part in (*side.every, *(e for e, _ in side.some))]
            parts += list(unknown.quotient or ())
            todo |= {inner for part in parts for inner in part.unknowns}
        return False

    def _if(self, op: scf.IfOp) -> None:
        yes, no = known_where(self, op.cond)
        branches: list[tuple[scf.YieldOp | None, Facts]] = []
        for region, facts in ((op.true_region, yes), (op.false_region, no)):
            if not region.blocks:
                continue
            with self._where(facts=facts, guards=self._guards_of(facts)):
                self._walk(region.block)
            last = region.block.last_op
            branches.append((last if isinstance(last, scf.YieldOp) else None, facts))
        for i, result in enumerate(op.results):
            if is_integer(result.type):
                self.values[result] = self.ranges.one_of(
                    [(self.value(last.operands[i]), facts) for last, facts in branches if last is not None]
                )

    def _guards_of(self, facts: Facts) -> list[int | None]:
        """Where a fact is about the launch's numbers alone, it decides whether a branch is taken at all."""
        return [self.ranges.number_of(fact) for fact in facts if self.ranges.is_given(fact)]

    def _each(self, op: TileForEachOp | TileMapOp) -> None:
        rows, columns, lanes = tile_shape(op.tile.type)
        _, row, column, lane = op.body.block.args
        lasts = [Polynomial.constant(length - 1) for length in (rows, columns, lanes)]
        facts: list[Polynomial] = []
        guards: list[int | None] = []
        only = op.rows if isinstance(op, TileForEachOp) else None
        row_last = Side((lasts[0],)) if only is None else Side((lasts[0], self.value(only).plus(-1)))
        self.values[row] = self.ranges.varying(Side((ZERO,)), row_last)
        for argument, last in ((column, lasts[1]), (lane, lasts[2])):
            self.values[argument] = self.ranges.varying(ZERO, last)
        if only is not None:
            guards.append(self.ranges.most(self.value(only).plus(-1), self._facts))
        if op.valid is not None:
            left = self.value(op.valid).plus(-1) - self.value(column).scaled(lanes)
            facts += [left, left - self.value(lane)]
            guards.append(self.ranges.most(self.value(op.valid).plus(-1), self._facts))
        with self._where(facts=tuple(facts), guards=guards):
            self._walk(op.body.block)

    def blocks(self, axis: int) -> Polynomial:
        if axis not in self._grid:
            return super().blocks(axis)
        count = self._grid[axis]
        self.conditions += grid_conditions(self.numbers, axis, count)
        return Polynomial.constant(count)

    # What is recorded.

    @property
    def numbers(self) -> Numbers:
        """The numbers of the accesses and conditions."""
        return self.ranges.numbers

    def require(self, expression: Polynomial) -> None:
        """An expression must be at least 0, for the rules that are used to hold."""
        if expression.value is not None and expression.value >= 0:
            return
        if self.ranges.is_given(expression) and self.ranges.is_natural(expression):
            return
        if not self._is_rehearsal:
            self.conditions.append(Condition(self.ranges.least(expression, self._facts), self._guards))

    def _record(self, op: Operation) -> None:
        if self._is_rehearsal:
            return
        for touched in touched_by(op):
            if not is_on_chip(touched.buffer):
                self._touch(touched)

    def _touch(self, touched: Touched) -> None:
        if touched.is_unknown:
            self.accesses.append(Access(touched.buffer, None, None, self._guards))
            return
        facts = () if touched.only_where is None else (self.value(touched.only_where).plus(-1),)
        with self._where(facts=facts, guards=self._guards_of(facts)):
            self._touch_elements(touched)

    def _touch_elements(self, touched: Touched) -> None:
        first = ZERO
        for index, factor in touched.terms:
            first = first + self._factor(index) * self._factor(factor)
        for run in touched.runs:
            last = Side(tuple(self._factor(one).plus(-1) for one in run.counts))
            first = first + self.ranges.varying(Side((ZERO,)), last) * self._factor(run.step)
        if touched.guarded is None:
            self._note(touched.buffer, first)
        else:
            self._touch_groups(touched.buffer, first, touched.guarded)

    def _touch_groups(self, buffer: SSAValue, first: Polynomial, groups: Guarded) -> None:
        """Where the first group is valid, and so many more as are."""
        left = self.value(groups.valid).plus(-groups.first - 1)
        with self._where(facts=(left,), guards=self._guards_of((left,))):
            last = Side((Polynomial.constant(groups.count - 1), self.ranges.floor_quotient(left, _number(groups.size))))
            step = self._factor(groups.stride).scaled(groups.step)
            self._note(buffer, first + self.ranges.varying(Side((ZERO,)), last) * step)

    def _factor(self, one: Factor) -> Polynomial:
        return self.value(one) if isinstance(one, SSAValue) else _number(one)

    def _note(self, buffer: SSAValue, element: Polynomial) -> None:
        # How far from the first element it begins matters to nobody.
        is_natural = self.ranges.is_natural(element)
        low = self.ranges.numbers.constant(0) if is_natural else self.ranges.least(element, self._facts)
        self.accesses.append(Access(buffer, low, self.ranges.most(element, self._facts), self._guards))


def is_on_chip(buffer: SSAValue) -> bool:
    """Whether a buffer is shared memory of a block or a cluster: the device stops an access beyond it."""
    type_: Attribute = buffer.type
    assert isinstance(type_, MemRefType)
    return not isinstance(type_.memory_space, NoneAttr)


def _number(value: int) -> Polynomial:
    return Polynomial.constant(value)
