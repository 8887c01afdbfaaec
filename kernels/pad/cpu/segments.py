"""Padding and tiling on a CPU: each row of the result is copied in contiguous segments, by vectors.

parallel (.., chunks of the row) {
  the row of the input, as the mode resolves it
  constant, edge: what lies before the input; the input; what lies behind it
  wrap: for each repetition: the part of the input in this chunk
  reflect: for each repetition: the part of the input in this chunk, every other one backwards
}
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import SSAValue

from mlirt.dialects.fused.pad import PadOp
from mlirt.dialects.kernel.core import ParallelOp, YieldOp
from mlirt.dialects.slicing import PadMode
from mlirt.dialects.symbolic import Dim, ceil_div
from mlirt.dialects.tensor_types import dims, element_of, rank
from mlirt.kernels.lib.loops.block_lanes import lane_axes, zero
from mlirt.kernels.lib.loops.loop_nest import Nest, NestCode, collapse
from mlirt.kernels.lib.loops.row_lanes import along_row
from mlirt.kernels.lib.loops.rows import whole
from mlirt.kernels.lib.tactics.lowering import KernelBuilder, Lowering
from mlirt.kernels.pad.generic import resolve

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
    _Segments(k, op, line, lowering).write()
    k.finish(op)
    return True


def _line(op: PadOp, lowering: Lowering) -> Line | None:
    """The rows as contiguous segments; None where rows are copies, or neighbours of the result are none in the input.
    """
    sizes, results = dims(op.input.type), dims(op.output.type)
    columns = list(zip(op.pre.dims(), op.strides(), sizes, results, strict=True))
    moved = [axis for axis, (pre, step, size, result) in enumerate(columns) if (pre, step) != (0, 1) or size != result]
    nest = collapse(
        Nest.of(results, [whole(op.input, lowering), whole(op.output, lowering)]).ordered(1), frozenset(moved)
    )
    last, factor = len(nest.extents) - 1, 1
    if last > 0 and not set(moved) & set(nest.groups[last]) and op.mode.data in _JOINING and nest.merges(last - 1):
        factor, last = nest.extents[last], last - 1
        nest = nest.merged(last)
    axes = set(moved) & set(nest.groups[last]) if nest.groups else set[int]()
    if len(axes) != 1 or any(one.steps[last] != 1 for one in nest.operands):
        return None
    (axis,) = axes
    pre, stride, size, result = columns[axis]
    if stride != 1:
        return None
    return Line(nest, tuple(other for other in moved if other != axis), pre * factor, size * factor, result * factor)


class _Segments:
    """The kernel of one op."""

    def __init__(self, k: KernelBuilder, op: PadOp, line: Line, lowering: Lowering) -> None:
        self.k, self.op, self.line = k, op, line
        self.code = NestCode(k, line.nest)
        self.lanes = lowering.target.vector_bits // 32
        self.pre, self.length, self.count = (k.size(size) for size in (line.pre, line.length, line.count))

    def write(self) -> None:
        k, op, nest = self.k, self.op, self.line.nest
        sizes, pres, strides = dims(op.input.type), op.pre.dims(), op.strides()
        outer = {axis: (k.size(pres[axis]), k.stride(strides[axis]), k.size(sizes[axis])) for axis in self.line.moved}
        zeros = [k.constant(0)] * rank(op.fill.type) if op.fill is not None else []
        fill = zero(k, element_of(op.input.type)) if op.fill is None else k.load(op.fill, zeros)
        extents = [k.size(extent) for extent in nest.extents[:-1]]
        tasks = ParallelOp([*extents, k.size(ceil_div(self.line.count, _CHUNK))])
        tasks.attributes["workers"] = UnitAttr()
        with k.inside(tasks.body.block):
            *target, chunk = tasks.body.block.args
            source, inside = list[SSAValue](target), None
            for axis, (pre, stride, length) in outer.items():
                loop = nest.groups.index((axis,))
                source[loop], valid = self._resolved(k.sub(k.mul(target[loop], stride), pre), length)
                inside = k.both(inside, valid)
            start = k.mul(chunk, _CHUNK)
            end = k.min(k.add(start, _CHUNK), self.count)
            row = _Row(self, list(target), source, start, end)
            if op.mode.data is PadMode.WRAP:
                row.wrap()
            elif op.mode.data is PadMode.REFLECT:
                row.reflect()
            else:
                row.between(inside, fill)
            k.insert(YieldOp(operands=[[]]))
        k.insert(tasks)

    def _resolved(self, place: SSAValue, length: SSAValue) -> tuple[SSAValue, SSAValue | None]:
        """A position of the input; divisions take long and are left out inside of it."""
        k, mode = self.k, self.op.mode.data
        if mode is PadMode.CONSTANT or mode is PadMode.EDGE:
            return resolve(k, place, length, mode)
        outside = k.compare("uge", place, length)
        return k.guarded(outside, lambda: resolve(k, place, length, mode)[0], place), None


class _Row:
    """A part of a row of the result: from `start` to `end`."""

    def __init__(
        self, segments: _Segments, target: list[SSAValue], source: list[SSAValue], start: SSAValue, end: SSAValue
    ) -> None:
        self.segments, self.k, self.target, self.source, self.start, self.end = (
            segments,
            segments.k,
            target,
            source,
            start,
            end,
        )

    def between(self, inside: SSAValue | None, fill: SSAValue) -> None:
        """What lies before the input, the part of the input, and what lies behind it."""
        k, segments = self.k, self.segments
        low = k.min(k.max(segments.pre, self.start), self.end)
        if inside is not None:
            low = k.select(inside, low, self.end)
        high = k.min(k.max(k.add(segments.pre, segments.length), low), self.end)
        before = after = fill
        if self.segments.op.mode.data is PadMode.EDGE:
            before = segments.code.load(0, [*self.source, k.constant(0)])
            after = segments.code.load(0, [*self.source, k.sub(segments.length, 1)])
        self._put(self.start, low, lambda _: before)
        self._copy(low, high, k.sub(low, segments.pre), 1)
        self._put(high, self.end, lambda _: after)

    def wrap(self) -> None:
        def part(low: SSAValue, high: SSAValue, first: SSAValue, _: SSAValue) -> None:
            self._copy(low, high, self.k.sub(low, first), 1)

        self._repetitions(self.segments.length, part)

    def reflect(self) -> None:
        k, length = self.k, self.segments.length
        last = k.sub(length, 1)
        period = k.max(last, 1)

        def part(low: SSAValue, high: SSAValue, first: SSAValue, number: SSAValue) -> None:
            walked = k.sub(low, first)
            k.either(
                k.compare("eq", k.value(arith.AndIOp(number, k.constant(1))), 0),
                lambda: self._copy(low, high, walked, 1),
                lambda: self._copy(low, high, k.min(k.sub(period, walked), last), -1),
            )

        self._repetitions(period, part)

    def _repetitions(self, period: SSAValue, part: Callable[[SSAValue, SSAValue, SSAValue, SSAValue], None]) -> None:
        """`part(low, high, first, number)` for each repetition of the input: where its part of this row begins and
        ends, and where it itself begins.
        """
        k, pre = self.k, self.segments.pre
        begin = self._quotient(k.sub(self.start, pre), period)
        end = k.add(self._quotient(k.sub(k.sub(self.end, pre), 1), period), 1)

        def step(number: SSAValue, _: list[SSAValue]) -> list[SSAValue]:
            repetition = k.add(begin, number)
            first = k.add(k.mul(repetition, period), pre)
            part(k.max(first, self.start), k.min(k.add(first, period), self.end), first, repetition)
            return []

        k.loop(k.sub(end, begin), [], step)

    def _quotient(self, place: SSAValue, period: SSAValue) -> SSAValue:
        """Which repetition holds a place; the first ones on either side are found without a division."""
        k = self.k
        far = k.compare("uge", k.add(place, period), k.mul(period, 3))
        near = k.select(k.compare("slt", place, 0), -1, k.select(k.compare("slt", place, period), 0, 1))
        return k.guarded(far, lambda: k.floor_div(place, period), near)

    def _copy(self, low: SSAValue, high: SSAValue, source: SSAValue, direction: int) -> None:
        """Elements of the input from `source` on, in the order of memory or backwards."""
        code = self.segments.code
        self._put(low, high, lambda at: code.load(0, [*self.source, source], [(at, direction)]))

    def _put(self, low: SSAValue, high: SSAValue, element: Callable[[SSAValue], SSAValue]) -> None:
        code, target = self.segments.code, [*self.target, low]
        along_row(
            self.k,
            self.k.sub(high, low),
            self.segments.lanes,
            lambda at: code.store(element(at), 1, target, [(at, 1)]),
        )
