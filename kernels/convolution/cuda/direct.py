"""Convolutions of few channels on a GPU where images lie in planes: multiply-adds of a thread's rows and channels.

parallel (n, block of channels, .., block of rows, column) {
  for each input channel and tap of the outer dimensions {
    load the cells that the windows of the rows meet; for each tap add cells x weights of the channels
  }
  for each row { epilogue; store the channels }
}
Neighbouring threads have neighbouring columns, and read and write neighbours in memory; all read the same weights.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import f32

from mlirt.dialects import symbolic
from mlirt.dialects.fused.contraction import ConvolutionOp
from mlirt.dialects.fused.epilogue import accumulator_type
from mlirt.dialects.kernel.fragment import OuterProductOp
from mlirt.dialects.layout import arranged
from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_types import dims, element_of, is_float, rank, stored_bytes
from mlirt.dialects.typical_sizes import typical, typical_values
from mlirt.kernels.lib.cuda.tiles.alignment import is_multiple
from mlirt.kernels.lib.cuda.warpgroups.row_epilogue import is_pointwise
from mlirt.kernels.lib.epilogue import extra_operands, finished_fragment
from mlirt.kernels.lib.language import Index, Value, build, kernel
from mlirt.kernels.lib.language.context import emit
from mlirt.kernels.lib.language.nest_words import linear_index
from mlirt.kernels.lib.language.simt_words import Access, fragment, load_fragment, part_of, store_fragment, zeros
from mlirt.kernels.lib.language.words import (
    Tensor,
    ceil_div,
    clamp,
    constant,
    extent,
    is_inside,
    parallel,
    place,
    static_range,
)
from mlirt.kernels.lib.loops.loop_nest import direct
from mlirt.kernels.lib.nests.taps import Axis
from mlirt.kernels.lib.tactics.lowering import Lowering

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array

OPS = (ConvolutionOp,)
TARGETS = frozenset({"cuda"})
PRIORITY = 15

CHANNEL, SPATIAL = 1, 2
_BLOCKS = ((4, 16), (4, 8), (2, 16), (2, 8))
"""Rows and channels of a thread."""
_FEW_CHANNELS, _NARROW_BLOCKS = 4, ((8, 4), (4, 4), (2, 4))
"""Channels of a result that are few, and the blocks for them."""
_MAX_CELLS = 48
_MIN_PIXELS = 4  # with less, a warp per result reads the weights in order
_MAX_DEPTH = 1024  # products of a result: with more of them tiles in shared memory read less, if they are not empty
_FULL_RATE, _THREADS = 0.5, 512  # of the multiply-adds, and threads that a processor has at once
_LATENCY = 100  # cycles of a step whose loads no other thread hides, at least


@dataclass(frozen=True)
class Block:
    """The results of a thread: `rows` of a column, of so many `channels`."""

    rows: int
    channels: int
    axes: tuple[Axis, ...]

    @property
    def name(self) -> str:
        return f"{self.rows}x{self.channels}"

    @property
    def window(self) -> tuple[int, int]:
        """Taps along the rows and the columns, in this order."""
        return self.axes[-2].known_size, self.axes[-1].known_size

    @property
    def outer(self) -> tuple[Axis, ...]:
        """The axes before these."""
        return self.axes[:-2]

    def line(self, row: int, tap: int) -> int:
        """The line of the input that a tap of a row meets, from the first one on."""
        return row * self.axes[-2].stride + tap * self.axes[-2].dilation

    def lines(self) -> list[int]:
        """All that are read."""
        return sorted({self.line(row, tap) for row in range(self.rows) for tap in range(self.window[0])})

    @property
    def cells(self) -> int:
        """Elements of the input that a thread has at once."""
        return len(self.lines()) * self.window[1]


def estimates(op: ConvolutionOp, lowering: Lowering) -> Mapping[str, float]:
    """Microseconds that a convolution takes, about, with each block of a thread."""
    return {block.name: _microseconds(op, block, lowering) for block in _blocks(op, lowering)}


def lower(op: ConvolutionOp, lowering: Lowering) -> bool:
    found = [block for block in _blocks(op, lowering) if block.name == lowering.choice(op)]
    if not found:
        return False
    _Direct(op, found[0], lowering).write()
    return True


def _blocks(op: ConvolutionOp, lowering: Lowering) -> list[Block]:
    """The blocks that fit; none where the op is no convolution of planes."""
    weights, last = dims(op.kernel.type), rank(op.output.type) - 1
    if op.transposed.value.data or op.groups.value.data != 1 or last not in (3, 4) or not is_pointwise(op):
        return []
    floats = is_float(element_of(op.input.type)) and accumulator_type(op.epilogue) == f32
    if not floats or lowering.known(op.kernel) is None or not all(isinstance(size, int) for size in weights):
        return []
    steps = [lowering.placements[value].strides[last] for value in (op.input, op.output)]
    depth = prod(size for size in weights[1:] if isinstance(size, int))
    pixels = typical(
        dims(op.output.type)[0] * symbolic.product(dims(op.output.type)[2:]), typical_values(lowering.block)
    )
    is_few = isinstance(weights[0], int) and weights[0] <= _FEW_CHANNELS
    if steps != [1, 1] or (depth > _MAX_DEPTH and not is_few) or pixels <= _MIN_PIXELS:
        return []
    axes = tuple(
        Axis(weights[axis], stride, dilation, pre, dims(op.input.type)[axis], dims(op.output.type)[axis])
        for axis, (stride, dilation, pre, _) in enumerate(op.spatial(), SPATIAL)
    )
    found = [Block(rows, channels, axes) for rows, channels in (_NARROW_BLOCKS if is_few else _BLOCKS)]
    return [one for one in found if one.cells <= _MAX_CELLS]


def _microseconds(op: ConvolutionOp, block: Block, lowering: Lowering) -> float:
    known, device = typical_values(lowering.block), lowering.target.gpu
    batch, channels, *spatial = (typical(size, known) for size in dims(op.output.type))
    spatial[-2] = -(-spatial[-2] // block.rows)
    threads = batch * -(-channels // block.channels) * prod(spatial)
    steps = prod(typical(size, known) for size in dims(op.kernel.type)[1:-2])
    taps = prod(block.window)
    adds = block.rows * block.channels * taps / (device.float_products * _FULL_RATE)
    reads = (2 * block.cells + taps * block.channels / 4) / 32
    waves = max(1.0, threads / (device.processors * _THREADS))
    cycles = max(waves * _THREADS * max(adds, reads), _LATENCY) * steps
    moved = typical(stored_bytes(op.input.type) + stored_bytes(op.output.type), known)
    return device.moves.launch + max(
        cycles / device.tiles.cycles_per_microsecond, 2 * moved / device.moves.copied_bytes
    )


def _packed(channels: int, weights: Array) -> Array:
    """`[block of channels, input channel, taps, channel]` in single precision, filled up with zeros."""
    import numpy as np

    taps = weights.reshape(*weights.shape[:2], -1).astype(np.float32)
    return arranged(taps, "(b n) c t", "b c t n", n=channels)


class _Direct:
    """The kernel of one convolution."""

    def __init__(self, op: ConvolutionOp, block: Block, lowering: Lowering) -> None:
        self.op, self.block = op, block
        self.k = k = lowering.kernel("convolution")
        self.input = Tensor(op.input, f32)
        self.sizes = dims(op.output.type)
        weights = dims(op.kernel.type)
        self.inputs, self.count = (size for size in (weights[1], weights[0]) if isinstance(size, int))
        self.outer_taps = prod(axis.known_size for axis in block.outer)
        self.weights = k.weights(lowering.packed(op.kernel, partial(_packed, block.channels)), "weights")
        places = lowering.placements
        self.extras = extra_operands(op, places)
        self.result = direct(op.output, places[op.output])
        self.pointers = [k.buffer(one.value, one.offset) for one in (*self.extras, self.result)]

    def write(self) -> None:
        build(self.k, self._write)
        self.k.finish(self.op)

    @kernel
    def _write(self) -> None:
        batch, _, *spatial = self.sizes
        rows, channels, height = self.block.rows, self.block.channels, self.sizes[-2]
        blocks = symbolic.ceil_div(self.count, channels)
        for loops in parallel(batch, blocks, *spatial[:-2], ceil_div(height, rows), spatial[-1]):
            first = loops[-2] * rows
            total = self._sum(loops, first)
            for row in static_range(rows):
                if row == 0 or is_multiple(height, rows) or first + row < extent(height):
                    at = [loops[0], loops[1] * channels, *loops[2:-2], first + row, loops[-1]]
                    self._store(at, total, row)

    @kernel
    def _sum(self, loops: Sequence[Value], first: Value) -> Value:
        """The accumulators, row by row the channels."""
        block, steps = self.block, self.inputs * self.outer_taps
        across, along = block.window
        total = zeros(f32, block.rows * block.channels)
        for step in range(steps):
            cells = self._cells(loops, first, place(step // self.outer_taps), place(step % self.outer_taps))
            here = (loops[1] * steps + step) * (across * along * block.channels)
            for tap in static_range(across):
                for beside in static_range(along):
                    index = here + (tap * along + beside) * block.channels
                    weights = load_fragment(self.weights, index, Access(static_range(block.channels), wide=True))
                    met = fragment([cells[block.line(row, tap), beside] for row in range(block.rows)])
                    total = emit(OuterProductOp(total, met, weights))
        return total

    @kernel
    def _cells(self, loops: Sequence[Value], first: Value, channel: Value, tap: Value) -> dict[tuple[int, int], Value]:
        """Of an input channel and a tap of the outer dimensions, the cells by line and tap along the columns."""
        block, found = self.block, dict[tuple[int, int], Value]()
        rows, columns = block.axes[-2:]
        fill = constant(self.op.padding_value.value.data, f32)
        outer, is_there = self._outer(loops, tap)
        for beside in static_range(columns.known_size):
            x, x_inside = _at(columns, loops[-1], 1, beside * columns.dilation)
            for line in block.lines():
                y, y_inside = _at(rows, first, block.rows, line)
                cell = self.input[[loops[0], channel, *outer, y, x]]
                inside = is_there and y_inside and x_inside
                found[line, beside] = cell if inside else fill
        return found

    @kernel
    def _outer(self, loops: Sequence[Value], tap: Value) -> tuple[list[Value], bool]:
        """Where a tap of the outer dimensions lies, and whether that is in the input."""
        found, inside = list[Value](), True
        for number, axis in reversed(list(enumerate(self.block.outer))):
            here, is_there = _at(axis, loops[2 + number], 1, tap % axis.known_size * axis.dilation)
            tap, found, inside = tap // axis.known_size, [here, *found], inside and is_there
        return found, inside

    @kernel
    def _store(self, at: Sequence[Value], total: Value, row: int) -> None:
        """The results of neighbouring channels, of the accumulators of all rows."""
        channels, left = self.block.channels, None
        if self.count % channels:
            left = min(self.count - at[CHANNEL], channels)
        values = [part_of(total, row * channels, channels)]
        values += [self._extra(number, at, left) for number in range(len(self.extras))]
        index, access = linear_index(self.result, at), self._access(self.result.steps[CHANNEL], left)
        element = element_of(self.op.output.type)
        store_fragment(finished_fragment(self.op.epilogue, values, element), self.pointers[-1], index, access)

    @kernel
    def _extra(self, number: int, at: Sequence[Value], left: Index | None) -> Value:
        """An extra operand of these results: one element for all, or one for each."""
        index, step = linear_index(self.extras[number], at), self.extras[number].steps[CHANNEL]
        if step == 0:
            return self.pointers[number][index]
        return load_fragment(self.pointers[number], index, self._access(step, left))

    def _access(self, step: Dim, left: Index | None) -> Access:
        return Access(range(self.block.channels), stride=None if step == 1 else extent(step), valid=left)


@kernel
def _at(axis: Axis, position: Value, block: int, offset: Index) -> tuple[Value, bool]:
    """The cell at an offset from where a window starts, or the nearest one, and whether it is in the input."""
    here = position * axis.stride + offset - extent(axis.pre)
    if axis.stays_inside(block):
        return here, True
    return clamp(here, extent(axis.length)), is_inside(here, extent(axis.length))


__all__ = ["estimates", "lower"]
