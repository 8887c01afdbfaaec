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

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from xdsl.dialects.builtin import f32

from mlirt.dialects.fused.epilogue import accumulator_type
from mlirt.dialects.fused.window import WindowKind, WindowOp
from mlirt.dialects.symbolic import Dim, floor_div, maximum, minimum
from mlirt.dialects.tensor_types import dims, rank
from mlirt.kernels.lib.builder.kernel_builder import KernelBuilder
from mlirt.kernels.lib.epilogue import finished
from mlirt.kernels.lib.language import Index, Value, build, builder, kernel, value_of
from mlirt.kernels.lib.language.nest_words import Places
from mlirt.kernels.lib.language.tile_words import lane_loop, tasks, worker_memory
from mlirt.kernels.lib.language.words import ceil_div, clamp, extent, place, prod, static_range, strided
from mlirt.kernels.lib.loops.block_lanes import lane_axes
from mlirt.kernels.lib.loops.loop_nest import Nest, NestCode, collapse
from mlirt.kernels.lib.loops.rows import whole
from mlirt.kernels.lib.loops.scalar_regions import indices_in
from mlirt.kernels.lib.nests.taps import Axis, AxisCode
from mlirt.kernels.lib.tactics.lowering import Lowering
from mlirt.kernels.window.combination import Combination
from mlirt.kernels.window.generic import mean, window_axes, window_nest

OPS = (WindowOp,)
TARGETS = frozenset({"cpu"})
PRIORITY = 10

# Fewer results in a row leave most lanes unused, unless they are of some vectors of the input.
_MIN_ROW_RESULTS, _MIN_VECTORS = 4, 3
# Elements between windows, which are combined in vain.
_MAX_GAP = 4
# Taps along an axis that are written out one by one.
_FEW_TAPS = 8
# Elements of memory that a worker has, those that it keeps, behind which a whole vector can be stored, and their rows.
_MEMORY, _KEPT, _ROWS = 4096, 4096 - 16, 8


def lower(op: WindowOp, lowering: Lowering) -> bool:
    nest = None if lane_axes(op.output.type) else _nest(op, lowering)
    if nest is None:
        return False
    k = lowering.kernel("window_rows")
    build(k, _Rows(k, op, nest, lowering).write)
    k.finish(op)
    return True


def _nest(op: WindowOp, lowering: Lowering) -> Nest | None:
    """The loops over the result, the last one along its rows and those of the input; None where rows are not alike."""
    space, last = dims(op.output.type), op.axes()[-1]
    nest = collapse(window_nest(op, lowering), indices_in(op.epilogue) | frozenset(op.axes()))
    length, along = space[last], window_axes(op)[-1]
    if nest.groups[-1] != (last,) or whole(op.input, lowering).steps[last] != 1 or nest.operands[-1].steps[-1] != 1:
        return None
    if any(one.steps[-1] not in (0, 1) for one in nest.operands):
        return None
    lanes = lowering.target.vector_bits // 32
    has_few = isinstance(length, int) and length < _MIN_ROW_RESULTS and length * along.stride < _MIN_VECTORS * lanes
    return None if has_few or along.stride > _reach(along) + _MAX_GAP or _results_kept(along, lanes) <= 0 else nest


def _reach(axis: Axis) -> int:
    """How far the last tap of a window lies from the first one."""
    assert isinstance(axis.size, int)
    return (axis.size - 1) * axis.dilation


def _ends(axis: Axis) -> tuple[Dim, Dim]:
    """How far windows reach out of the input before its first and behind its last element."""
    return axis.pre, (axis.output - 1) * axis.stride + _reach(axis) + 1 - axis.pre - axis.length


def _results_kept(axis: Axis, lanes: int) -> int:
    """How many results of a row, whole vectors, have all their windows in the memory of a worker."""
    return ((_KEPT - 1 - _reach(axis)) // axis.stride + 1) // lanes * lanes


@dataclass(frozen=True)
class _Part:
    """Some results of a row: the loops around it, the first one, how many they are, and where it is kept.

    `taps` are those of the other axes, as `_taps` gives them.
    """

    outer: Sequence[Value]
    first: Value
    count: Index
    kept: Index
    taps: Sequence[tuple[Value, Index, Index]]


@dataclass(frozen=True)
class _Span:
    """What is kept of a row: `size` elements; those from `left` to `right` are of the input, from `begin` on."""

    begin: Value
    left: Index
    right: Index
    size: Index


class _Rows:
    """The kernel of one op."""

    def __init__(self, k: KernelBuilder, op: WindowOp, nest: Nest, lowering: Lowering) -> None:
        self.op, self.nest, self.code = op, nest, NestCode(k, nest)
        self.lanes = lowering.target.vector_bits // 32
        self.combination = Combination(k, op)
        *self.across, self.along = window_axes(op)
        self.codes = [AxisCode(k, axis) for axis in window_axes(op)]
        self.steps = [k.strides(op.input)[axis] for axis in op.axes()]
        self.posts = [value_of(k.size(post)) if op.includes_padding else None for post in op.post_padding.dims()]
        self.lengths = [value_of(k.size(axis.length)) for axis in window_axes(op)]
        self.width, self.pre = value_of(k.size(nest.extents[-1])), value_of(k.size(self.along.pre))
        self.has_short_ends = all(isinstance(end, int) and end <= self.lanes for end in _ends(self.along))
        self.kept = build(k, worker_memory, self.combination.accumulator_type, _MEMORY)

    @kernel
    def write(self) -> None:
        size = _results_kept(self.along, self.lanes)
        *around, length = self.nest.extents
        rows = around.pop() if around else 1
        # A run may have rows without results, by which nothing can be divided.
        row_size = (maximum(1, minimum(length, size)) - 1) * self.along.stride + _reach(self.along) + 1
        some = maximum(1, minimum(_ROWS, floor_div(_KEPT, row_size)))
        at_once, total = extent(some), extent(rows)
        extents = [extent(one) for one in (*around, ceil_div(rows, some), ceil_div(length, size))]
        pitch = extent(row_size)
        for *outer, block, number in tasks(extents):
            begin, first = block * at_once, number * size
            count = min(self.width - first, size)
            span, here = self._span(first, count), min(total - begin, at_once)

            def part(row: Index) -> _Part:
                loops = [*outer, begin + row][: len(self.nest.extents) - 1]
                taps = [self._taps(axis, loops) for axis in range(len(self.across))]
                return _Part(loops, first, count, row * pitch, taps)

            if not self.along.stays_inside():
                for row in range(here):
                    self._fill(row * pitch, span)
            for row in range(here):
                self._keep(part(row), span)
            for row in range(here):
                self._give(part(row))

    @kernel
    def _taps(self, number: int, outer: Sequence[Value]) -> tuple[Value, Index, Index]:
        """Where the windows start along another axis, their first tap in the input, and the one behind the last."""
        code, axis = self.codes[number], self.across[number]
        start = code.start(outer[self.nest.groups.index((self.op.axes()[number],))])
        if axis.stays_inside():
            return start, place(0), code.taps
        low = min(max(ceil_div(-start, axis.dilation), 0), code.taps)
        high = min(ceil_div(self.lengths[number] - start, axis.dilation), code.taps)
        return start, low, max(high, low)

    @kernel
    def _span(self, first: Value, count: Index) -> _Span:
        begin = first * self.along.stride - self.pre
        size = (count - 1) * self.along.stride + (_reach(self.along) + 1)
        left = min(max(-begin, 0), size)
        right = max(min(self.lengths[-1] - begin, size), left)
        return _Span(begin + left, left, right, size)

    @kernel
    def _fill(self, kept: Index, span: _Span) -> None:
        """What lies before the input, and what lies behind it: a whole vector of each where one is enough."""
        start, memory = self.combination.start, self.kept
        if self.has_short_ends:
            for lane in lane_loop(self.lanes, self.lanes):
                strided(memory, 1, 1)[kept, lane] = start
            behind = max(span.size - self.lanes, 0)
            for lane in lane_loop(self.lanes, self.lanes):
                strided(memory, 1, 1, 1)[kept, behind, lane] = start
            return
        for lane in lane_loop(span.left, self.lanes):
            strided(memory, 1, 1)[kept, lane] = start
        for lane in lane_loop(span.size - span.right, self.lanes):
            strided(memory, 1, 1, 1)[kept, span.right, lane] = start

    @kernel
    def _keep(self, part: _Part, span: _Span) -> None:
        """What the windows of the part read of a row, combined along the other axes; most have all of their taps."""
        has_few = all(isinstance(axis.size, int) and axis.size <= _FEW_TAPS for axis in self.across)
        if has_few and all(self._is_whole(axis, taps) for axis, taps in zip(self.across, part.taps, strict=True)):
            self._keep_lanes(part, span, True)
        else:
            self._keep_lanes(part, span, False)

    @kernel
    def _is_whole(self, axis: Axis, taps: tuple[Value, Index, Index]) -> Any:
        """Whether all taps of a window lie in the input along another axis."""
        return axis.stays_inside() or taps[2] - taps[1] == axis.known_size

    @kernel
    def _keep_lanes(self, part: _Part, span: _Span, is_whole: bool) -> None:
        for lane in lane_loop(span.right - span.left, self.lanes):
            start = None if is_whole else self.combination.start
            found = self._down(part, [], [(span.begin, 1), (lane, 1)], start, is_whole)
            strided(self.kept, 1, 1, 1)[part.kept, span.left, lane] = found

    @kernel
    def _down(self, part: _Part, cells: Places, last: Places, best: Value | None, is_whole: bool) -> Any:
        """The taps of the other axes from the one on that has no cell yet; `last` is the place along the row."""
        number = len(cells)
        if number == len(self.across):
            element = value_of(self.code.load(0, part.outer, [*cells, *last]))
            tap = self.combination.part(element)
            return tap if best is None else self.combination.of(best, tap)
        (start, low, high), axis = part.taps[number], self.across[number]
        for tap in static_range(axis.known_size) if is_whole else range(high - low):
            cell = start + ((0 if is_whole else low) + tap) * axis.dilation
            cell = clamp(cell, extent(axis.length)) if is_whole and not axis.stays_inside() else cell
            best = self._down(part, [*cells, (cell, self.steps[number])], last, best, is_whole)
        return best

    @kernel
    def _give(self, part: _Part) -> None:
        """The results of a part."""
        op, code, outputs = self.op, self.code, len(self.op.extras) + 1
        for lane in lane_loop(part.count, self.lanes):
            total = self.combination.total(self._along(part, lane))
            if op.kind.data is WindowKind.AVERAGE:
                total = self._mean(total, part, lane)
            steps = [code.step(number, len(part.outer)) for number in range(1, outputs)]
            more = [[(part.first, step), (lane, step)] for step in steps]
            extras = [code.load(number, part.outer, moved) for number, moved in enumerate(more, 1)]
            here = [*part.outer, part.first + lane]
            axes = rank(op.output.type)
            value = finished(op.epilogue, total, extras, axes, lambda axis: code.original(axis, here))
            code.store(value, outputs, part.outer, [(part.first, 1), (lane, 1)])

    @kernel
    def _along(self, part: _Part, lane: Value) -> Value:
        """The taps along the row."""
        axis, memory, size = self.along, self.kept, self.along.known_size
        best = strided(memory, 1, axis.stride)[part.kept, lane]
        for tap in static_range(size - 1) if size <= _FEW_TAPS else range(self.codes[-1].taps - 1):
            element = strided(memory, 1, 1, axis.stride)[part.kept, (tap + 1) * axis.dilation, lane]
            best = self.combination.of(best, element)
        return best

    @kernel
    def _mean(self, total: Value, part: _Part, lane: Value) -> Value:
        """The sum of a window divided by the number of its cells."""
        axes, accumulator = [*self.across, self.along], accumulator_type(self.op.epilogue)
        ends = [post if self.op.includes_padding else None for post in self.op.post_padding.dims()]
        if accumulator == f32 and all(_counts_all(axis, post) for axis, post in zip(axes, ends, strict=True)):
            return total * value_of(builder().scalar(1 / prod([axis.size for axis in axes]), f32))
        counts = [
            high - low if post is None else code.count(start, post)
            for code, (start, low, high), post in zip(self.codes, part.taps, self.posts, strict=False)
        ]
        start = self.codes[-1].start(part.first + lane)
        return mean(total, [*counts, self.codes[-1].count(start, self.posts[-1])], accumulator)


def _counts_all(axis: Axis, post: Dim | None) -> bool:
    """Whether all taps of every window count along an axis."""
    if post is None:
        return axis.stays_inside()
    room = axis.length + axis.pre + post - _reach(axis) - 1 - (axis.output - 1) * axis.stride
    return isinstance(room, int) and room >= 0
