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

from xdsl.dialects.builtin import IntegerType, Signedness, f16, i8, i32, i64
from xdsl.ir import Attribute, Operation, SSAValue

from mlirt.dialects.fused.reduction import ReductionKind, neutral
from mlirt.dialects.fused.window import WindowKind, WindowOp
from mlirt.dialects.symbolic import ceil_div, product
from mlirt.dialects.tensor_types import byte_width, channels, dims, element_name, element_of
from mlirt.dialects.typical_sizes import typical, typical_values
from mlirt.passes.lowering.block_lanes import number
from mlirt.passes.lowering.kernel_builder import Stride
from mlirt.passes.lowering.loop_nest import Affine, Nest, NestCode, affine, collapse
from mlirt.passes.lowering.lowering import Lowering
from mlirt.passes.lowering.reduction_nest import accumulator_of, indices_in
from mlirt.passes.lowering.rows import whole
from mlirt.passes.lowering.taps import Axis, AxisCode
from mlirt.passes.lowering.tiles.problem import is_half
from mlirt.passes.lowering.window.generic import window_axes

OPS = (WindowOp,)
TARGETS = frozenset({"cuda"})
PRIORITY = 10

_UI8 = IntegerType(8, Signedness.UNSIGNED)
_CHANNEL = 1
_WIDE = 16  # bytes of a vector of channels
_MOST_LINES, _MOST_VALUES = 16, 64  # that a thread holds
_THREADS = 32 * 1024  # that a launch should have


def lower(op: Operation, lowering: Lowering) -> bool:
    assert isinstance(op, WindowOp)
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
    vector = _WIDE // byte_width(element_of(op.output.type)) if steps[_CHANNEL] == 1 else 1
    results = typical(product(dims(op.output.type)), typical_values(lowering.block)) // vector
    rows = 4 if first.stride == 1 else 2
    most = min(_MOST_LINES, _MOST_VALUES // vector)
    while rows > 1 and (results < rows * _THREADS or len(_lines(first, rows)) > most):
        rows //= 2
    return rows if len(_lines(first, rows)) <= _MOST_LINES else None


def _lines(axis: Axis, rows: int) -> list[int]:
    """The lines of the input that a strip reads, from its first one on."""
    assert isinstance(axis.size, int)
    return sorted({row * axis.stride + tap * axis.dilation for row in range(rows) for tap in range(axis.size)})


class _Strips:
    """The kernel of one pooling layer."""

    def __init__(self, op: WindowOp, rows: int, lowering: Lowering) -> None:
        self.op, self.rows, places, space = op, rows, lowering.placements, dims(op.output.type)
        self.k = k = lowering.kernel("window")
        self.axes = window_axes(op)
        self.accumulator, element = accumulator_of(op.epilogue), element_of(op.input.type)
        # The largest of some halves is one of them; bytes are compared in whole registers, where they need no care.
        is_max = op.kind.data is WindowKind.MAX
        compared: dict[Attribute, Attribute] = {f16: f16, i8: i32, _UI8: i32}
        self.sums: Attribute = compared.get(element, self.accumulator) if is_max else self.accumulator
        kind = ReductionKind.MAX if is_max else ReductionKind.ADD
        self.start = number(k, neutral(kind, element_name(self.sums)), self.sums)
        self.outside = number(k, neutral(kind, element_name(element)), element)
        extras = [
            affine(value, places[value], one, len(space)) for value, one in zip(op.extras, op.access, strict=True)
        ]
        steps = whole(op.input, lowering).steps
        kept = tuple(0 if axis in op.axes() else step for axis, step in enumerate(steps))
        nest = Nest.of(space, [Affine(op.input, kept), *extras, whole(op.output, lowering)]).ordered(-1)
        self.needed = indices_in(op.epilogue) | set(op.axes())
        self.code = NestCode(k, collapse(nest, frozenset(self.needed)))
        self.arithmetic = [AxisCode(k, axis) for axis in self.axes]
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

    def _combine(self, a: SSAValue, b: SSAValue) -> SSAValue:
        k = self.k
        s = k.scalars(self.sums)
        combined = s.max if self.op.kind.data is WindowKind.MAX else s.add
        return k.typed(combined(k.ready(a), k.ready(b)), self.sums)

    def _all_lines(self, loops: Sequence[SSAValue], starts: Sequence[SSAValue]) -> dict[int, SSAValue]:
        """For each line that the strip reads, what the window combines of it."""
        k, offsets = self.k, _lines(self.axes[0], self.rows)

        def taps(axis: int, cells: list[tuple[SSAValue, SSAValue | None]], totals: list[SSAValue]) -> list[SSAValue]:
            if axis < len(self.axes):
                start, code = starts[axis], self.arithmetic[axis]
                return k.loop(
                    code.taps, totals, lambda tap, sums: taps(axis + 1, [*cells, self._cell(axis, start, tap)], sums)
                )
            return [
                self._combine(total, self._read(loops, [self._cell(0, k.add(starts[0], offset), None), *cells]))
                for offset, total in zip(offsets, totals, strict=True)
            ]

        return dict(zip(offsets, taps(1, [], [self.start] * len(offsets)), strict=True))

    def _cell(self, axis: int, start: SSAValue, tap: SSAValue | None) -> tuple[SSAValue, SSAValue | None]:
        """Where a tap reads along an axis, and the condition under which it does (None: always)."""
        code, about = self.arithmetic[axis], self.axes[axis]
        place, inside = code.place(start, self.k.constant(0) if tap is None else tap)
        # Along neighbours in memory a condition keeps each thread at one of them.
        is_free = self.op.kind.data is WindowKind.MAX and _has_nearest(about) and self.steps[axis] != 1
        if inside is None or not is_free:
            return place, inside
        return self.k.clamp(place, self.k.size(about.length)), None

    def _read(self, loops: Sequence[SSAValue], cells: Sequence[tuple[SSAValue, SSAValue | None]]) -> SSAValue:
        k, element = self.k, element_of(self.op.input.type)
        more = [(place, step) for (place, _), step in zip(cells, self.steps, strict=True)]
        valid = reduce(k.both, [inside for _, inside in cells])
        found = k.guarded(valid, lambda: self.code.load(0, loops, more), self.outside)
        return k.typed(k.scalars(self.sums).cast(k.ready(found), element), self.sums)

    def _finish(self, at: Sequence[SSAValue], starts: Sequence[SSAValue], lines: dict[int, SSAValue], row: int) -> None:
        """The result of a row of the strip."""
        k, op, code, about = self.k, self.op, self.code, self.axes[0]
        assert isinstance(about.size, int)
        total = reduce(self._combine, [lines[row * about.stride + tap * about.dilation] for tap in range(about.size)])
        total = k.typed(k.scalars(self.accumulator).cast(k.ready(total), self.sums), self.accumulator)
        if op.kind.data is WindowKind.AVERAGE:
            total = self._divided(total, [k.add(starts[0], row * about.stride), *starts[1:]])
        scalars = [total, *(code.load(1 + position, at) for position in range(len(op.extras)))]
        indices = [
            code.original(axis, at) if axis in self.needed else at[0] for axis in range(len(dims(op.output.type)))
        ]
        (value,) = k.inline(op.epilogue, scalars, indices)
        code.store(value, 1 + len(op.extras), at)

    def _divided(self, total: SSAValue, starts: Sequence[SSAValue]) -> SSAValue:
        """The mean of the cells that count, 0 of none; halves are multiplied by the reciprocal of the number."""
        k, op = self.k, self.op
        posts = [k.size(post) for post in op.post_padding.dims()] if op.includes_padding else [None] * len(starts)
        counts = [axis.count(start, post) for axis, start, post in zip(self.arithmetic, starts, posts, strict=True)]
        s = k.scalars(self.accumulator)
        cells = s.cast(k.to_integer(k.max(reduce(k.mul, counts), 1), i64), i64)
        if is_half(element_of(op.output.type)):
            return s.mul(total, s.div(k.constant(1, self.accumulator), cells))
        return k.typed(s.div(k.ready(total), cells), self.accumulator)


def _has_nearest(axis: Axis) -> bool:
    """Whether the cell of the input that is nearest to any cell of a window belongs to the window."""
    sizes = (axis.size, axis.pre, axis.length, axis.output)
    if axis.dilation != 1 or not all(isinstance(size, int) for size in sizes):
        return False
    size, pre, length, output = (int(str(size)) for size in sizes)
    return 0 <= pre < size and 0 < length and (output - 1) * axis.stride - pre < length


__all__ = ["lower"]
