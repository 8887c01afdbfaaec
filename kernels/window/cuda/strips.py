"""Pooling on a GPU where windows overlap: a thread has a strip of rows of the result and reads each line once.

parallel (n, c, block of rows, column) {
  for each other tap of the window { for each line of the input that the strip reads { combine with the line's } }
  for each row of the strip { combine its lines; divide; epilogue; store }
}

Where channels are innermost, the loops over them become vectors. A maximum reads the nearest cell of the input in the
place of one outside, which is in the window as well: no load waits for a condition.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from math import inf, prod

from xdsl.ir import SSAValue

from mlirt.dialects.fused.window import WindowKind, WindowOp
from mlirt.dialects.symbolic import ceil_div, product
from mlirt.dialects.tensor_types import byte_width, channels, dims, element_of
from mlirt.dialects.typical_sizes import typical, typical_values
from mlirt.kernels.lib.builder.kernel_builder import Stride
from mlirt.kernels.lib.loops.loop_nest import Affine, Nest, NestCode, affine, collapse
from mlirt.kernels.lib.loops.reduction_nest import indices_in
from mlirt.kernels.lib.loops.rows import whole
from mlirt.kernels.lib.loops.taps import AxisCode
from mlirt.kernels.lib.tactics.lowering import Lowering
from mlirt.kernels.window.combination import Combination, has_nearest, strip_lines
from mlirt.kernels.window.cuda.means import Means
from mlirt.kernels.window.generic import window_axes

OPS = (WindowOp,)
TARGETS = frozenset({"cuda"})
PRIORITY = 10

_CHANNEL = 1
_VECTOR_BYTES = 16  # bytes of a vector of channels
_MAX_LINES, _MAX_VALUES = 16, 64  # that a thread holds
_MAX_READS = 24  # that follow one another without a loop, so that all of them can be under way
_THREADS = 32 * 1024  # that a launch should have


def lower(op: WindowOp, lowering: Lowering) -> bool:
    rows = _rows(op, lowering)
    if rows is None:
        return False
    _Strips(op, rows, lowering).write()
    return True


def _rows(op: WindowOp, lowering: Lowering) -> int | None:
    """Rows of a strip: more of them share what they read, fewer keep more threads busy; None where it does not pay."""
    first, steps = window_axes(op)[0], lowering.placements[op.output].strides
    overlaps = isinstance(first.size, int) and (first.size - 1) * first.dilation >= first.stride
    if not overlaps or channels(op.input.type) is not None or steps[op.axes()[0]] == 1:
        return None
    vector = _VECTOR_BYTES // byte_width(element_of(op.output.type)) if steps[_CHANNEL] == 1 else 1
    results = typical(product(dims(op.output.type)), typical_values(lowering.block)) // vector
    rows = 4 if first.stride == 1 else 2
    most = min(_MAX_LINES, _MAX_VALUES // vector)
    while rows > 1 and (results < rows * _THREADS or len(strip_lines(first, rows)) > most):
        rows //= 2
    return rows if len(strip_lines(first, rows)) <= _MAX_LINES else None


class _Strips:
    """The kernel of one pooling layer."""

    def __init__(self, op: WindowOp, rows: int, lowering: Lowering) -> None:
        self.op, self.rows, places, space = op, rows, lowering.placements, dims(op.output.type)
        self.k = k = lowering.kernel("window")
        self.axes = window_axes(op)
        self.parts = Combination(k, op)
        extras = [
            affine(value, places[value], one, len(space)) for value, one in zip(op.extras, op.access, strict=True)
        ]
        steps = whole(op.input, lowering).steps
        kept = tuple(0 if axis in op.axes() else step for axis, step in enumerate(steps))
        nest = Nest.of(space, [Affine(op.input, kept), *extras, whole(op.output, lowering)]).ordered(-1)
        self.needed = indices_in(op.epilogue) | set(op.axes())
        self.code = NestCode(k, collapse(nest, frozenset(self.needed)))
        self.arithmetic = [AxisCode(k, axis, 1 if number else rows) for number, axis in enumerate(self.axes)]
        self.means = Means(k, op, self.axes, self.arithmetic)
        self.steps: list[Stride] = [k.strides(op.input)[axis] for axis in op.axes()]
        self.place = self.code.nest.groups.index((op.axes()[0],))

    def write(self) -> None:
        k, first = self.k, self.op.axes()[0]
        extents = self.code.extents()
        length = extents[self.place]
        extents[self.place] = ceil_div(length, self.rows)
        fits = isinstance(length, int) and length % self.rows == 0
        with k.parallel(extents) as loops:
            row = k.mul(loops[self.place], self.rows)
            starts = [axis.start(self.code.original(at, loops)) for axis, at in zip(self.arithmetic, self.op.axes())]
            starts[0] = self.arithmetic[0].start(row)
            lines = self._all_lines(loops, starts)
            for number_ in range(self.rows):
                at = [*loops]
                at[self.place] = k.add(row, number_)

                def finish(at: list[SSAValue] = at, number_: int = number_) -> None:
                    self._finish(at, starts, lines, number_)

                if fits or number_ == 0:
                    finish()
                else:
                    k.when(k.compare("slt", at[self.place], k.size(dims(self.op.output.type)[first])), finish)
        k.finish(self.op)

    def _all_lines(self, loops: Sequence[SSAValue], starts: Sequence[SSAValue]) -> dict[int, SSAValue]:
        """For each line that the strip reads, what the window combines of it."""
        k, offsets = self.k, strip_lines(self.axes[0], self.rows)

        def taps(axis: int, cells: list[tuple[SSAValue, SSAValue | None]], totals: list[SSAValue]) -> list[SSAValue]:
            if axis < len(self.axes):
                start, code, size = starts[axis], self.arithmetic[axis], self.axes[axis].size

                def step(tap: SSAValue, accumulators: list[SSAValue]) -> list[SSAValue]:
                    return taps(axis + 1, [*cells, self._cell(axis, start, tap)], accumulators)

                if not isinstance(size, int) or self._reads() > _MAX_READS:
                    return k.loop(code.taps, totals, step)
                for tap in range(size):
                    totals = step(k.constant(tap), totals)
                return totals
            return [
                self._more(total, self._read(loops, [self._cell(0, k.add(starts[0], offset), None), *cells]))
                for offset, total in zip(offsets, totals, strict=True)
            ]

        return dict(zip(offsets, taps(1, [], [self.parts.start] * len(offsets)), strict=True))

    def _more(self, total: SSAValue, part: SSAValue) -> SSAValue:
        return part if total is self.parts.start else self.parts.of(total, part)

    def _reads(self) -> float:
        """How many elements of the input a thread reads, vectors counted as one."""
        sizes = [axis.size if isinstance(axis.size, int) else inf for axis in self.axes[1:]]
        return len(strip_lines(self.axes[0], self.rows)) * prod(sizes)

    def _cell(self, axis: int, start: SSAValue, tap: SSAValue | None) -> tuple[SSAValue, SSAValue | None]:
        """Where a tap reads along an axis, and the condition under which it does (None: always)."""
        code, about = self.arithmetic[axis], self.axes[axis]
        place, inside = code.place(start, self.k.constant(0) if tap is None else tap)
        # Along neighbours in memory a condition keeps each thread at one of them.
        is_free = self.op.kind.data is WindowKind.MAX and has_nearest(about) and self.steps[axis] != 1
        if inside is None or not is_free:
            return place, inside
        return self.k.clamp(place, self.k.size(about.length)), None

    def _read(self, loops: Sequence[SSAValue], cells: Sequence[tuple[SSAValue, SSAValue | None]]) -> SSAValue:
        k = self.k
        more = [(place, step) for (place, _), step in zip(cells, self.steps, strict=True)]
        valid = reduce(k.both, [inside for _, inside in cells])
        return self.parts.part(k.guarded(valid, lambda: self.code.load(0, loops, more), self.parts.outside))

    def _finish(self, at: Sequence[SSAValue], starts: Sequence[SSAValue], lines: dict[int, SSAValue], row: int) -> None:
        """The result of a row of the strip."""
        k, op, code, about = self.k, self.op, self.code, self.axes[0]
        assert isinstance(about.size, int)
        total = reduce(self.parts.of, [lines[row * about.stride + tap * about.dilation] for tap in range(about.size)])
        total = self.parts.total(total)
        if op.kind.data is WindowKind.AVERAGE:
            places = [k.add(starts[0], row * about.stride), *starts[1:]]
            counts = [self.means.count(axis, place) for axis, place in enumerate(places)]
            (total,) = self.means.of([total], [counts])
        scalars = [total, *(code.load(1 + position, at) for position in range(len(op.extras)))]
        indices = [
            code.original(axis, at) if axis in self.needed else at[0] for axis in range(len(dims(op.output.type)))
        ]
        (value,) = k.inline(op.epilogue, scalars, indices)
        code.store(value, 1 + len(op.extras), at)


__all__ = ["lower"]
