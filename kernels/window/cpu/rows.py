"""Pooling of rows on a CPU where neighbours lie side by side in memory: lanes are neighbours along a row.

parallel (.., some rows of the result, parts of a row) {
  for each row:
    for each vector of the input's row: combine what the windows have of it along the other axes -> the worker's memory
    what lies before and behind the input changes nothing -> there too
  for each row:
    for each vector of the result's row: combine the taps along the row, from there; divide; epilogue; store
}

Several rows are kept before any is read, for a vector that was just stored in parts cannot be loaded at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce

from xdsl.dialects import arith
from xdsl.dialects.builtin import UnitAttr, f32
from xdsl.ir import SSAValue

from mlirt.dialects.fused.window import WindowKind, WindowOp
from mlirt.dialects.kernel.core import SMALL_STEPS, LoadOp, ParallelOp, StoreOp, YieldOp
from mlirt.dialects.kernel.worker import WorkerMemoryOp
from mlirt.dialects.symbolic import Dim, ceil_div, floor_div, maximum, minimum
from mlirt.dialects.tensor_types import dims
from mlirt.kernels.lib.builder.kernel_builder import KernelBuilder
from mlirt.kernels.lib.loops.block_lanes import lane_axes
from mlirt.kernels.lib.loops.loop_nest import Affine, Nest, NestCode, affine, collapse
from mlirt.kernels.lib.loops.reduction_nest import accumulator_of, indices_in
from mlirt.kernels.lib.loops.row_lanes import along_row
from mlirt.kernels.lib.loops.rows import whole
from mlirt.kernels.lib.loops.taps import Axis, AxisCode
from mlirt.kernels.lib.tactics.lowering import Lowering
from mlirt.kernels.window.combination import Combination
from mlirt.kernels.window.generic import divided, window_axes

OPS = (WindowOp,)
TARGETS = frozenset({"cpu"})
PRIORITY = 10

# Fewer results in a row leave most lanes unused.
_MIN_ROW_RESULTS = 4
# Taps along an axis that are written out one by one.
_FEW_TAPS = 8
# Elements that a worker keeps, and the rows that they are of.
_KEPT, _ROWS = 4096, 8


def lower(op: WindowOp, lowering: Lowering) -> bool:
    nest = None if lane_axes(op.output.type) else _nest(op, lowering)
    if nest is None:
        return False
    k = lowering.kernel("window_rows")
    _Rows(k, op, nest, lowering).write()
    k.finish(op)
    return True


def _nest(op: WindowOp, lowering: Lowering) -> Nest | None:
    """The loops over the result, the last one along its rows and those of the input; None where rows are not alike."""
    places, space, last = lowering.placements, dims(op.output.type), op.axes()[-1]
    extras = [affine(value, places[value], one, len(space)) for value, one in zip(op.extras, op.access, strict=True)]
    steps = whole(op.input, lowering).steps
    kept = Affine(op.input, tuple(0 if axis in op.axes() else step for axis, step in enumerate(steps)))
    needed = indices_in(op.epilogue) | set(op.axes())
    nest = collapse(Nest.of(space, [kept, *extras, whole(op.output, lowering)]).ordered(-1), frozenset(needed))
    length, along = space[last], window_axes(op)[-1]
    if nest.groups[-1] != (last,) or steps[last] != 1 or nest.operands[-1].steps[-1] != 1:
        return None
    if any(one.steps[-1] not in (0, 1) for one in nest.operands) or along.stride not in (1, *SMALL_STEPS):
        return None
    is_short = isinstance(length, int) and length < _MIN_ROW_RESULTS
    return None if is_short or _results_kept(along, lowering.target.vector_bits // 32) <= 0 else nest


def _reach(axis: Axis) -> int:
    """How far the last tap of a window lies from the first one."""
    assert isinstance(axis.size, int)
    return (axis.size - 1) * axis.dilation


def _results_kept(axis: Axis, lanes: int) -> int:
    """How many results of a row, whole vectors, have all their windows in the memory of a worker."""
    return ((_KEPT - 1 - _reach(axis)) // axis.stride + 1) // lanes * lanes


@dataclass(frozen=True)
class _Part:
    """Some results of a row: the loops around it, the first one, how many they are, and where it is kept.

    `taps` are those of the other axes, as `_taps` gives them.
    """

    outer: list[SSAValue]
    first: SSAValue
    count: SSAValue
    kept: SSAValue
    taps: list[tuple[SSAValue, SSAValue, SSAValue]]


@dataclass(frozen=True)
class _Span:
    """What is kept of a row: `size` elements; those from `left` to `right` are of the input, from `begin` on."""

    begin: SSAValue
    left: SSAValue
    right: SSAValue
    size: SSAValue


class _Rows:
    """The kernel of one op."""

    def __init__(self, k: KernelBuilder, op: WindowOp, nest: Nest, lowering: Lowering) -> None:
        self.k, self.op, self.nest = k, op, nest
        self.code = NestCode(k, nest)
        self.lanes = lowering.target.vector_bits // 32
        self.combination = Combination(k, op)
        *self.across, self.along = window_axes(op)
        self.codes = [AxisCode(k, axis) for axis in window_axes(op)]
        self.steps = [k.strides(op.input)[axis] for axis in op.axes()]
        self.posts = [k.size(post) if op.includes_padding else None for post in op.post_padding.dims()]
        self.lengths = [k.size(axis.length) for axis in window_axes(op)]
        self.width, self.pre = k.size(nest.extents[-1]), k.size(self.along.pre)
        self.kept = k.value(WorkerMemoryOp(self.combination.accumulator_type, _KEPT))

    def write(self) -> None:
        k, nest, size = self.k, self.nest, _results_kept(self.along, self.lanes)
        *around, length = nest.extents
        rows = around.pop() if around else 1
        # A run may have rows without results, by which nothing can be divided.
        pitch = (maximum(1, minimum(length, size)) - 1) * self.along.stride + _reach(self.along) + 1
        some = maximum(1, minimum(_ROWS, floor_div(_KEPT, pitch)))
        at_once, total = k.size(some), k.size(rows)
        tasks = ParallelOp([k.size(extent) for extent in (*around, ceil_div(rows, some), ceil_div(length, size))])
        tasks.attributes["workers"] = UnitAttr()
        pitch_value = k.size(pitch)
        with k.inside(tasks.body.block):
            *outer, block, number = tasks.body.block.args
            begin, first = k.mul(block, at_once), k.mul(number, size)
            count = k.min(k.sub(self.width, first), size)

            span = self._span(first, count)

            def part(row: SSAValue) -> _Part:
                loops = [*outer, k.add(begin, row)][: len(nest.extents) - 1]
                taps = [self._taps(axis, loops) for axis in range(len(self.across))]
                return _Part(loops, first, count, k.mul(row, pitch_value), taps)

            here = k.min(k.sub(total, begin), at_once)
            if not self.along.stays_inside():
                self._each(here, lambda row: self._fill(k.mul(row, pitch_value), span))
            self._each(here, lambda row: self._keep(part(row), span))
            self._each(here, lambda row: self._give(part(row)))
            k.insert(YieldOp(operands=[[]]))
        k.insert(tasks)

    def _each(self, count: SSAValue, body: Callable[[SSAValue], None]) -> None:
        def step(row: SSAValue, _: list[SSAValue]) -> list[SSAValue]:
            body(row)
            return []

        self.k.loop(count, [], step)

    def _taps(self, number: int, outer: Sequence[SSAValue]) -> tuple[SSAValue, SSAValue, SSAValue]:
        """Where the windows start along another axis, their first tap in the input, and the one behind the last."""
        k, code, axis = self.k, self.codes[number], self.across[number]
        start = code.start(outer[self.nest.groups.index((self.op.axes()[number],))])
        if axis.stays_inside():
            return start, k.constant(0), code.taps
        low = k.ceil_div(k.sub(k.constant(0), start), axis.dilation)
        high = k.ceil_div(k.sub(self.lengths[number], start), axis.dilation)
        low = k.min(k.max(low, 0), code.taps)
        return start, low, k.max(k.min(high, code.taps), low)

    def _span(self, first: SSAValue, count: SSAValue) -> _Span:
        k = self.k
        begin = k.sub(k.mul(first, self.along.stride), self.pre)
        size = k.add(k.mul(k.sub(count, 1), self.along.stride), _reach(self.along) + 1)
        left = k.min(k.max(k.sub(k.constant(0), begin), 0), size)
        right = k.max(k.min(k.sub(self.lengths[-1], begin), size), left)
        return _Span(k.add(begin, left), left, right, size)

    def _fill(self, kept: SSAValue, span: _Span) -> None:
        """What lies before the input, and what lies behind it."""
        start = self.combination.start
        along_row(self.k, span.left, self.lanes, lambda lane: self._put(start, [kept, lane]))
        along_row(
            self.k,
            self.k.sub(span.size, span.right),
            self.lanes,
            lambda lane: self._put(start, [kept, span.right, lane]),
        )

    def _keep(self, part: _Part, span: _Span) -> None:
        """What the windows of the part read of a row, combined along the other axes."""

        def combined(lane: SSAValue) -> None:
            found = self._down(part, 0, [], span.begin, lane, self.combination.start)
            self._put(found, [part.kept, span.left, lane])

        along_row(self.k, self.k.sub(span.right, span.left), self.lanes, combined)

    def _give(self, part: _Part) -> None:
        """The results of a part."""
        along_row(self.k, part.count, self.lanes, lambda lane: self._result(part, lane))

    def _put(self, value: SSAValue, place: list[SSAValue]) -> None:
        self.k.insert(StoreOp(value, self.kept, place, [1] * len(place)))

    def _down(
        self, part: _Part, number: int, places: list[SSAValue], at: SSAValue, lane: SSAValue, best: SSAValue
    ) -> SSAValue:
        """The taps of the other axes from `number` on; `places` are those along the axes before it."""
        k = self.k
        if number == len(self.across):
            more = [*zip(places, self.steps[:-1], strict=True), (at, 1), (lane, 1)]
            return self.combination.of(best, self.combination.part(self.code.load(0, part.outer, more)))
        start, low, high = part.taps[number]
        axis = self.across[number]

        def inner(tap: SSAValue, found: SSAValue) -> SSAValue:
            place = k.add(start, k.mul(tap, axis.dilation))
            return self._down(part, number + 1, [*places, place], at, lane, found)

        if axis.stays_inside() and isinstance(axis.size, int) and axis.size <= _FEW_TAPS:
            return reduce(lambda found, tap: inner(k.constant(tap), found), range(axis.size), best)
        return k.loop(k.sub(high, low), [best], lambda tap, found: [inner(k.add(low, tap), found[0])])[0]

    def _result(self, part: _Part, lane: SSAValue) -> None:
        k, op, code, outputs = self.k, self.op, self.code, len(self.op.extras) + 1
        total = self.combination.total(self._across(part, lane))
        if op.kind.data is WindowKind.AVERAGE:
            total = self._mean(total, part, lane)
        scalars = [total]
        for number in range(1, outputs):
            step = code.step(number, len(part.outer))
            scalars.append(code.load(number, part.outer, [(part.first, step), (lane, step)]))
        column = k.add(part.first, lane)
        indices = [code.original(axis, [*part.outer, column]) for axis in range(len(dims(op.output.type)))]
        (value,) = k.inline(op.epilogue, scalars, indices)
        code.store(value, outputs, part.outer, [(part.first, 1), (lane, 1)])

    def _across(self, part: _Part, lane: SSAValue) -> SSAValue:
        """The taps along the row."""
        k, axis, codes = self.k, self.along, self.codes
        assert isinstance(axis.size, int)

        def tap(number: SSAValue, best: SSAValue) -> SSAValue:
            places = [part.kept, k.mul(number, axis.dilation), lane]
            return self.combination.of(best, k.value(LoadOp(self.kept, places, [1, 1, axis.stride])))

        first = k.value(LoadOp(self.kept, [part.kept, lane], [1, axis.stride]))
        if axis.size <= _FEW_TAPS:
            return reduce(lambda best, number: tap(k.constant(number), best), range(1, axis.size), first)
        return k.loop(k.sub(codes[-1].taps, 1), [first], lambda number, best: [tap(k.add(number, 1), best[0])])[0]

    def _mean(self, total: SSAValue, part: _Part, lane: SSAValue) -> SSAValue:
        """The sum of a window divided by the number of its cells."""
        k, axes = self.k, [*self.across, self.along]
        accumulator = accumulator_of(self.op.epilogue)
        if all(_counts_all(axis, post) for axis, post in zip(axes, self._posts(), strict=True)) and accumulator == f32:
            cells = reduce(lambda a, b: a * b, (int(str(axis.size)) for axis in axes))
            return k.value(arith.MulfOp(total, k.scalar(1 / cells, f32)))
        counts = [
            k.sub(high, low) if post is None else code.count(start, post)
            for code, (start, low, high), post in zip(self.codes, part.taps, self.posts, strict=False)
        ]
        start = self.codes[-1].start(k.add(part.first, lane))
        return divided(k, total, reduce(k.mul, [*counts, self.codes[-1].count(start, self.posts[-1])]), accumulator)

    def _posts(self) -> list[Dim | None]:
        return [post if self.op.includes_padding else None for post in self.op.post_padding.dims()]


def _counts_all(axis: Axis, post: Dim | None) -> bool:
    """Whether all taps of every window count along an axis."""
    if post is None:
        return axis.stays_inside()
    room = axis.length + axis.pre + post - _reach(axis) - 1 - (axis.output - 1) * axis.stride
    return isinstance(room, int) and room >= 0
