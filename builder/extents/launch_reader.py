"""Follows one launch, whose numbers are all known, through its kernel: every thread of every block, by intervals.

Bounds that hold for all launches of a kernel are not always found, and may be too wide for one of them. Here the blocks
and threads are enumerated, a part of the blocks at a time, and loops are run; only what the addresses of accesses to
buffers depend on is computed. What data decide has the bounds of its type, and both sides of a branch on it are taken.

Large grids and long loops are not enumerated where that is not needed: the outermost blocks, and the first and the last
iteration, are followed exactly, all between them at once as an interval. Where those touch nothing beyond the outermost
ones, the bounds are as exact as those of an enumeration, and the work does not grow with the lengths.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import product
from math import prod
from typing import TypeAlias

import numpy as np
from xdsl.dialects import scf
from xdsl.dialects.builtin import IndexType, IntegerAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue

from mlirt.builder.extents.integer_rules import RULES, narrowed
from mlirt.builder.extents.integer_types import WORD, bits_of, range_of
from mlirt.builder.extents.intervals import (
    ANY,
    Ends,
    Interval,
    Mask,
    add,
    between,
    choose,
    exactly,
    floor_divide,
    largest,
    less,
    multiply,
    never_below,
    opposite,
    remainder,
    smallest,
    subtract,
)
from mlirt.builder.extents.kernel_reader import Access, Condition, grid_conditions, is_on_chip
from mlirt.builder.extents.needed_values import NeededValues
from mlirt.builder.extents.numbers import Numbers
from mlirt.builder.extents.touched import Factor, Guarded, Touched, touched_by
from mlirt.builder.plan_writer.manifest import block_shape
from mlirt.dialects.kernel.cluster import ClusterRankOp
from mlirt.dialects.kernel.core import FuncOp
from mlirt.dialects.kernel.simt import WARP, BlockIdOp, GridSizeOp, ShuffleOp, ThreadIdOp
from mlirt.dialects.kernel.warp_specialization import EachWarpgroupOp
from mlirt.dialects.kernel.warpgroup import WarpValueOp

_Ends: TypeAlias = "tuple[int, int] | None"
"""The first and the last element that is touched; None where nothing bounds them."""
_FOLLOWED_ITERATIONS = 4
"""So many iterations are followed one by one."""
_AT_ONCE = 1 << 18
"""Threads whose numbers are computed together."""
MAX_WORK = 1 << 30
"""How many numbers following a launch may take, all ops and threads together."""
_OVERHEAD = 1 << 12
"""So many numbers take as long as an op by itself: a loop of few threads and many iterations takes its time, too."""


class TooMuchWork(Exception):
    """A launch has too many threads, or loops of too many iterations."""


class LaunchReader:
    """What a launch touches; `arguments` are its integers by place, `grid` its blocks along x, y and z.

    Raises `TooMuchWork` beyond so many numbers.
    """

    def __init__(self, kernel: FuncOp, arguments: Mapping[int, int], grid: Sequence[int], most: int = MAX_WORK) -> None:
        self.kernel, self.constants, self.signed = kernel, arguments, frozenset[int]()
        self.numbers = Numbers()
        self._grid = [*grid, 1, 1][:3]
        self._threads = prod(block_shape(kernel))
        self._index_limit = 1 << (_attribute(kernel, "index_bits", WORD) - 1)
        self._needed = NeededValues(kernel)
        self._found: dict[SSAValue, _Ends] = {}
        self._touched: dict[Operation, list[Touched]] = {}
        self._work, self._most = 0, most
        self.is_sure = True
        """Whether each launch touches the first and the last element; else data or loops decide, and it may not."""
        self._is_certain = True
        self.values: dict[SSAValue, Interval] = {}
        self.active: Mask = np.ones((1, 1), bool)
        self._enumerated: set[Operation] = set()
        """Loops whose iterations touch what the first and the last do not, as far as intervals tell."""
        count = prod(self._grid)
        if count * self._threads <= _AT_ONCE or not self._follow_outermost():
            at_once = max(1, _AT_ONCE // self._threads)
            for first in range(0, count, at_once):
                blocks = np.arange(first, min(first + at_once, count), dtype=np.int64)[:, None]
                self._follow(_places(blocks, self._grid))

    def _follow(self, block: Sequence[Interval]) -> None:
        """The launch's threads in blocks of these places along the axes."""
        self._block = block
        self.values = {
            argument: exactly(self.constants[place])
            for place, argument in enumerate(self.kernel.body.block.args)
            if place in self.constants
        }
        self._walk(self.kernel.body.block)

    def _follow_outermost(self) -> bool:
        """The blocks at the ends of the axes; whether no other one touches more."""
        corners = [sorted({0, count - 1}) for count in self._grid]
        x, y, z = (ids.reshape(-1, 1) for ids in np.meshgrid(*corners))
        self._follow([exactly(one) for one in (x, y, z)])
        outermost, is_sure = self._found, self.is_sure
        parts = [[*((one, one) for one in ends), *([(1, ends[-1] - 1)] if ends[-1] > 1 else [])] for ends in corners]
        inner = [one for one in product(*parts) if any(low != high for low, high in one)]
        self._found = {}
        if inner:
            ends = np.array(inner, np.int64)
            self._follow([Interval(ends[:, axis, :1], ends[:, axis, 1:]) for axis in range(len(parts))])
        inside, self._found = self._found, outermost
        self.is_sure = is_sure
        if _is_within(inside, outermost):
            return True
        self._found, self.is_sure = {}, True
        return False

    @property
    def accesses(self) -> list[Access]:
        """The elements that are touched, one run of them for each buffer."""
        numbers = {
            buffer: (None, None) if ends is None else (self.numbers.constant(ends[0]), self.numbers.constant(ends[1]))
            for buffer, ends in self._found.items()
        }
        return [Access(buffer, low, high, frozenset()) for buffer, (low, high) in numbers.items()]

    @property
    def conditions(self) -> list[Condition]:
        """That a launch has the grid that was followed."""
        return [one for axis, count in enumerate(self._grid) for one in grid_conditions(self.numbers, axis, count)]

    # Values.

    def value(self, of: SSAValue) -> Interval:
        """An integer; what its type holds, where nothing more is known of it."""
        found = self.values.get(of)
        return _anything(of.type) if found is None else found

    def _set(self, value: SSAValue, interval: Interval) -> None:
        self._work += interval.size + _OVERHEAD
        if self._work > self._most:
            raise TooMuchWork
        self.values[value] = interval if self._fits(value.type, interval) else _anything(value.type)

    def _fits(self, type_: Attribute, interval: Interval) -> bool:
        """Whether arithmetic of a type gives an interval without wrapping."""
        if bits_of(type_) == 1:
            return True
        limit = self._index_limit if isinstance(type_, IndexType) else 1 << (bits_of(type_) - 1)
        if limit >= 1 << (WORD - 1) or interval.magnitude < limit:
            return True
        ends = [end for end in (interval.low, interval.high) if end is not None]
        return len(ends) == 2 and all(not ((np.abs(end) >= limit) & self.active).any() for end in ends)

    @contextmanager
    def _where(self, condition: Interval) -> Generator[bool]:
        """With the threads for which a truth may hold; says whether there are any."""
        before = self.active, self._is_certain
        assert condition.high is not None
        self.active = self.active & (condition.high > 0)
        self._is_certain = self._is_certain and condition.exact is not None
        yield bool(self.active.any())
        self.active, self._is_certain = before

    @contextmanager
    def _knowing(self, condition: SSAValue, is_true: bool) -> Generator[None]:
        """With what a comparison says of numbers that are not known."""
        known = dict(narrowed(condition, is_true, self.value, self.active))
        before = {value: self.values.get(value) for value in known}
        self.values.update(known)
        yield
        for value, interval in before.items():
            if interval is None:
                self.values.pop(value)
            else:
                self.values[value] = interval

    # Control.

    def _walk(self, block: Block) -> None:
        for op in block.ops:
            if op in self._needed:
                self._visit(op)

    def _visit(self, op: Operation) -> None:
        if isinstance(op, scf.ForOp):
            self._for(op)
        elif isinstance(op, scf.IfOp):
            self._if(op)
        elif op.regions:
            self._any_regions(op)
        else:
            self._compute(op)
        touched = self._touched.get(op)
        if touched is None:
            touched = self._touched[op] = [one for one in touched_by(op) if not is_on_chip(one.buffer)]
        for one in touched:
            self._touch(one)

    def _any_regions(self, op: Operation) -> None:
        """Whatever the arguments of its regions are; all threads come to those of warpgroups alone."""
        before = self._is_certain
        self._is_certain = before and isinstance(op, EachWarpgroupOp)
        for region in op.regions:
            for block in region.blocks:
                self._walk(block)
        self._is_certain = before

    def _compute(self, op: Operation) -> None:
        if isinstance(op, ThreadIdOp):
            self._set(op.result, exactly(np.arange(self._threads, dtype=np.int64)[None, :]))
        elif isinstance(op, BlockIdOp):
            axis = op.axis.value.data
            self._set(op.result, self._block[axis])
        elif isinstance(op, GridSizeOp):
            self._set(op.result, exactly(self._grid[op.axis.value.data]))
        elif isinstance(op, ClusterRankOp):
            x, y, z = self._block
            row = add(y, multiply(z, exactly(self._grid[1])))
            number = add(x, multiply(row, exactly(self._grid[0])))
            self._set(op.result, remainder(number, exactly(_attribute(self.kernel, "cluster", 1)), self.active))
        elif isinstance(op, WarpValueOp):
            self._set(op.results[0], _of_threads(self.value(op.operands[0]), lambda thread: thread // WARP * WARP))
        elif isinstance(op, ShuffleOp):
            mask = op.mask.value.data
            self._set(op.result, _of_threads(self.value(op.value), lambda thread: thread ^ mask))
        elif (rule := RULES.get(op.name)) is not None:
            self._set(op.results[0], rule(op, [self.value(one) for one in op.operands], self.active))

    def _if(self, op: scf.IfOp) -> None:
        condition = self.value(op.cond)
        results = [one for one in op.results if one in self._needed.values]
        yielded: list[list[Interval] | None] = []
        for region, truth in ((op.true_region, condition), (op.false_region, opposite(condition))):
            if not region.blocks:
                continue
            with self._where(truth) as is_entered, self._knowing(op.cond, truth is condition):
                if is_entered:
                    self._walk(region.block)
                last = region.block.last_op
                yielded.append(
                    [self.value(last.operands[one.index]) for one in results]
                    if is_entered and isinstance(last, scf.YieldOp)
                    else None
                )
        for i, result in enumerate(results):
            sides = [one[i] for one in yielded if one is not None]
            match sides:
                case [yes, no]:
                    self._set(result, choose(condition, yes, no, self.active))
                case [only]:
                    self._set(result, only)
                case _:
                    pass  # no thread is here

    def _for(self, op: scf.ForOp) -> None:
        start, end, step = (self.value(one) for one in (op.lb, op.ub, op.step))
        iteration, *carried = op.body.block.args
        kept = [i for i, one in enumerate(carried) if one in self._needed.values]
        if any(one.exact is None for one in (start, end, step)) or not never_below(step, 1, np.ones((1, 1), bool)):
            self._any_iteration(op, start, end, step, kept)
            return
        if not kept and op not in self._enumerated and self._outermost_iterations(op, start, end, step):
            return
        for i in kept:
            self.values[carried[i]] = self.value(op.iter_args[i])
        at = start
        while True:
            runs = less(at, end)
            with self._where(runs) as is_entered:
                if not is_entered:
                    break
                self._set(iteration, at)
                self._walk(op.body.block)
                last = op.body.block.last_op
                assert last is not None
                after = [self.value(last.operands[i]) for i in kept]
            for i, new in zip(kept, after, strict=True):
                self._set(carried[i], choose(runs, new, self.value(carried[i]), self.active))
            at = add(at, step)
        for i in kept:
            self.values[op.results[i]] = self.value(carried[i])

    def _outermost_iterations(self, op: scf.ForOp, start: Interval, end: Interval, step: Interval) -> bool:
        """The first and the last iteration of each thread; whether those between touch nothing else."""
        assert start.exact is not None
        assert end.exact is not None
        assert step.exact is not None
        counts = -((start.exact - end.exact) // step.exact)
        if int(counts.max()) <= _FOLLOWED_ITERATIONS:
            return False
        iteration, last = op.body.block.args[0], start.exact + (counts - 1) * step.exact
        before, was_sure = self._found, self.is_sure
        self._found = {}
        for at, is_run in ((start, counts > 0), (exactly(last), counts > 1)):
            self._iterations(op, iteration, at, is_run)
        outermost, is_sure = self._found, self.is_sure
        self._found = {}
        self._iterations(op, iteration, Interval(start.exact + step.exact, last - step.exact), counts > 2)
        inside = self._found
        self._found, self.is_sure = before, was_sure
        if not _is_within(inside, outermost):
            self._enumerated.add(op)
            return False
        self.is_sure = is_sure
        for buffer, ends in outermost.items():
            self._found[buffer] = _hull(before.get(buffer, ends), ends)
        return True

    def _iterations(self, op: scf.ForOp, iteration: SSAValue, at: Interval, is_run: Mask) -> None:
        with self._where(exactly(is_run)) as is_entered:
            if is_entered:
                self._set(iteration, at)
                self._walk(op.body.block)

    def _any_iteration(self, op: scf.ForOp, start: Interval, end: Interval, step: Interval, kept: list[int]) -> None:
        """The body once, for all iterations: what they carry may be anything."""
        iteration, *carried = op.body.block.args
        for i in kept:
            self.values.pop(carried[i], None)
            self.values.pop(op.results[i], None)
        is_forward = never_below(step, 1, self.active)
        last = subtract(end, exactly(1))
        with self._where(less(start, end)) as is_entered:
            if is_entered:
                self._set(iteration, Interval(start.low, last.high) if is_forward else ANY)
                self._walk(op.body.block)

    # What is touched.

    def _touch(self, touched: Touched) -> None:
        self.is_sure = self.is_sure and self._is_certain and not touched.is_unknown
        if touched.is_unknown:
            self._found[touched.buffer] = None
            return
        element, only = exactly(0), touched.only_where
        for index, factor in touched.terms:
            element = add(element, multiply(self._factor(index), self._factor(factor)))
        for run in touched.runs:
            count = self._factor(run.counts[0])
            for one in run.counts[1:]:
                count = smallest(count, self._factor(one))
            last = largest(subtract(count, exactly(1)), exactly(0))
            element = add(element, multiply(_up_to(last), self._factor(run.step)))
        with self._where(exactly(1) if only is None else less(exactly(0), self._factor(only))) as is_entered:
            if is_entered and touched.guarded is None:
                self._note(touched.buffer, element)
            elif is_entered and touched.guarded is not None:
                self._touch_groups(touched.buffer, element, touched.guarded)

    def _touch_groups(self, buffer: SSAValue, element: Interval, groups: Guarded) -> None:
        """Where the first group is valid, and so many more as are."""
        left = subtract(self._factor(groups.valid), exactly(groups.first + 1))
        with self._where(less(exactly(0), left, or_equal=True)) as is_entered:
            if is_entered:
                last = smallest(floor_divide(left, exactly(groups.size), self.active), exactly(groups.count - 1))
                step = multiply(self._factor(groups.stride), exactly(groups.step))
                self._note(buffer, add(element, multiply(_up_to(last), step)))

    def _factor(self, one: Factor) -> Interval:
        found = self.value(one) if isinstance(one, SSAValue) else exactly(one)
        self.is_sure = self.is_sure and found.exact is not None
        return found

    def _note(self, buffer: SSAValue, element: Interval) -> None:
        if element.low is None or element.high is None:
            self._found[buffer] = None
            return
        ends = int(_active(element.low, self.active).min()), int(_active(element.high, self.active).max())
        self._found[buffer] = _hull(self._found.get(buffer, ends), ends)


def _hull(one: _Ends, other: _Ends) -> _Ends:
    return None if one is None or other is None else (min(one[0], other[0]), max(one[1], other[1]))


def _is_within(inside: Mapping[SSAValue, _Ends], outermost: Mapping[SSAValue, _Ends]) -> bool:
    return all(
        buffer in outermost and _hull(outermost[buffer], ends) == outermost[buffer] for buffer, ends in inside.items()
    )


def _places(blocks: Ends, grid: Sequence[int]) -> list[Interval]:
    """Where blocks lie along each axis, by their number."""
    return [exactly(blocks // prod(grid[:axis]) % grid[axis]) for axis in range(len(grid))]


def _active(ends: Ends, active: Mask) -> Ends:
    shape = np.broadcast_shapes(ends.shape, active.shape)
    return np.broadcast_to(ends, shape)[np.broadcast_to(active, shape)]


def _up_to(last: Interval) -> Interval:
    return Interval(exactly(0).low, last.high)


def _of_threads(value: Interval, other: Callable[[Ends], Ends]) -> Interval:
    """For each thread what another one has."""
    low, high = (
        end if end is None or end.shape[1] == 1 else end[:, other(np.arange(end.shape[1], dtype=np.int64))]
        for end in (value.low, value.high)
    )
    return Interval(low, low if value.exact is not None else high)


def _anything(type_: Attribute) -> Interval:
    ends = range_of(type_)
    return ANY if ends is None else _between(*ends)


_between = cache(between)
"""Of a few types, asked for by each op: the same arrays, which nobody changes."""


def _attribute(kernel: FuncOp, name: str, default: int) -> int:
    given = kernel.attributes.get(name)
    return given.value.data if isinstance(given, IntegerAttr) else default
