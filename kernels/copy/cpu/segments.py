"""Padding and tiling on a CPU: each row of the result is copied in contiguous segments, by vectors.

parallel (.., chunks of the row) {
  the row of the input, as the mode resolves it
  constant, edge: what lies before the input; the input; what lies behind it
  wrap: for each repetition: the part of the input in this chunk
  reflect: for each repetition: the part of the input in this chunk, every other one backwards
}
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mlirt.dialects.fused.pad import PadOp
from mlirt.dialects.slicing import PadMode
from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_types import dims
from mlirt.kernels.copy.pad import fill_of, moved_nest, resolved
from mlirt.kernels.lib.language import Value, build, builder, kernel, value_of
from mlirt.kernels.lib.language.tile_words import lane_loop, tasks
from mlirt.kernels.lib.language.words import ceil_div, extent, floor_div, is_inside, place, stride
from mlirt.kernels.lib.loops.block_lanes import lane_axes
from mlirt.kernels.lib.loops.loop_nest import Nest, NestCode
from mlirt.kernels.lib.tactics.lowering import KernelBuilder, Lowering

OPS = (PadOp,)
TARGETS = frozenset({"cpu"})
PRIORITY = 10

# Elements of a row of the result that are one task.
_CHUNK = 4096
# Modes in which what follows an axis in memory moves with it.
_JOINING = (PadMode.CONSTANT, PadMode.WRAP)


@dataclass(frozen=True)
class Line:
    """The innermost loop: `count` elements of the result, of which number `pre` is the first of `length` in the input.

    `moved` are the other dimensions along which the result is no copy.
    """

    nest: Nest
    moved: tuple[int, ...]
    pre: Dim
    length: Dim
    count: Dim


def lower(op: PadOp, lowering: Lowering) -> bool:
    line = None if lane_axes(op.output.type) else _line(op, lowering)
    if line is None:
        return False
    k = lowering.kernel("segments")
    build(k, _Segments(k, op, line, lowering).write)
    k.finish(op)
    return True


def _line(op: PadOp, lowering: Lowering) -> Line | None:
    """The rows as contiguous segments; None where they are copies or neighbours of the result are none in the input."""
    nest, moved = moved_nest(op, lowering)
    last, factor = len(nest.extents) - 1, 1
    if last > 0 and not set(moved) & set(nest.groups[last]) and op.mode.data in _JOINING and nest.merges(last - 1):
        factor, last = nest.extents[last], last - 1
        nest = nest.merged(last)
    axes = set(moved) & set(nest.groups[last]) if nest.groups else set[int]()
    if len(axes) != 1 or any(one.steps[last] != 1 for one in nest.operands):
        return None
    (axis,) = axes
    pre, size, result = (sizes[axis] for sizes in (op.pre.dims(), dims(op.input.type), dims(op.output.type)))
    if op.strides()[axis] != 1:
        return None
    return Line(nest, tuple(other for other in moved if other != axis), pre * factor, size * factor, result * factor)


class _Segments:
    """The kernel of one op."""

    def __init__(self, k: KernelBuilder, op: PadOp, line: Line, lowering: Lowering) -> None:
        self.op, self.line, self.code = op, line, NestCode(k, line.nest)
        self.lanes = lowering.target.vector_bits // 32
        self.pre, self.length, self.count = (k.size(size) for size in (line.pre, line.length, line.count))

    @kernel
    def write(self) -> None:
        op, nest, mode = self.op, self.line.nest, self.op.mode.data
        sizes, pres, steps = dims(op.input.type), op.pre.dims(), op.strides()
        moved = {axis: (extent(pres[axis]), stride(steps[axis]), extent(sizes[axis])) for axis in self.line.moved}
        fill = fill_of(op)
        for *target, chunk in tasks([*nest.extents[:-1], ceil_div(self.line.count, _CHUNK)]):
            source, inside = [*target], True
            for axis in self.line.moved:
                (pre, step, length), loop = moved[axis], nest.groups.index((axis,))
                wanted = target[loop] * step - pre
                source[loop] = self._resolved(wanted, length)
                if mode is PadMode.CONSTANT:
                    inside = inside and is_inside(wanted, length)
            start = chunk * _CHUNK
            row = _Row(self, target, source, start, place(min(start + _CHUNK, self.count)))
            if mode is PadMode.WRAP:
                row.wrap()
            elif mode is PadMode.REFLECT:
                row.reflect()
            else:
                row.between(inside, fill)

    @kernel
    def _resolved(self, wanted: Value, length: Value) -> Value:
        """A position of the input; divisions take long and are left out inside of it."""
        mode = self.op.mode.data
        if mode is PadMode.CONSTANT or mode is PadMode.EDGE:
            return resolved(wanted, length, mode)
        found = wanted
        if builder().compare("uge", wanted, length):
            found = resolved(wanted, length, mode)
        return found


# Where a repetition of the input begins and ends in this row, where it itself begins, and its number.
_Part = Callable[[Value, Value, Value, Value], None]


@dataclass(frozen=True)
class _Row:
    """A part of a row of the result: from `start` to `end`."""

    segments: _Segments
    target: Sequence[Value]
    source: Sequence[Value]
    start: Value
    end: Value

    @kernel
    def between(self, inside: bool, fill: Value) -> None:
        """What lies before the input, the part of the input, and what lies behind it."""
        segments, before, after = self.segments, fill, fill
        low = place(min(max(segments.pre, self.start), self.end))
        low = low if inside else self.end
        high = place(min(max(segments.pre + segments.length, low), self.end))
        if segments.op.mode.data is PadMode.EDGE:
            before = segments.code.load(0, [*self.source, place(0)])
            after = segments.code.load(0, [*self.source, segments.length - 1])
        self._put(self.start, low, lambda _: before)
        self._copy(low, high, low - segments.pre, 1)
        self._put(high, self.end, lambda _: after)

    @kernel
    def wrap(self) -> None:
        """The repetitions of the input."""
        self._repetitions(self.segments.length, lambda low, high, first, _: self._copy(low, high, low - first, 1))

    @kernel
    def reflect(self) -> None:
        """The repetitions of the input, every other one backwards; they share their ends."""
        last = self.segments.length - 1
        period = place(max(last, 1))

        def part(low: Value, high: Value, first: Value, number: Value) -> None:
            walked = low - first
            if number & 1 == 0:
                self._copy(low, high, walked, 1)
            else:
                self._copy(low, high, place(min(period - walked, last)), -1)

        self._repetitions(period, part)

    @kernel
    def _repetitions(self, period: Value, part: _Part) -> None:
        """Each repetition of the input that has elements in this row."""
        pre = self.segments.pre
        begin = self._quotient(self.start - pre, period)
        end = self._quotient(self.end - pre - 1, period) + 1
        for number in range(end - begin):
            repetition = begin + number
            first = repetition * period + pre
            part(place(max(first, self.start)), place(min(first + period, self.end)), first, repetition)

    @kernel
    def _quotient(self, wanted: Value, period: Value) -> Value:
        """Which repetition holds a place; the first ones on either side are found without a division."""
        found = place(-1) if wanted < 0 else 0 if wanted < period else 1
        if builder().compare("uge", wanted + period, period * 3):
            found = floor_div(wanted, period)
        return value_of(found)

    @kernel
    def _copy(self, low: Value, high: Value, source: Value, direction: int) -> None:
        """Elements of the input from `source` on, in the order of memory or backwards."""
        code = self.segments.code
        self._put(low, high, lambda at: code.load(0, [*self.source, source], [(at, direction)]))

    @kernel
    def _put(self, low: Value, high: Value, element: Callable[[Value], Value]) -> None:
        for at in lane_loop(high - low, self.segments.lanes):
            self.segments.code.store(element(at), 1, [*self.target, low], [(at, 1)])
