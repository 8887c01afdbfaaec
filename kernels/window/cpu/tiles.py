"""Pooling of blocked tensors on register tiles: some pixels of a row at a time, one where a window leaves the input."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import f32, i32

from mlirt.dialects.blocked_layout import is_blocked
from mlirt.dialects.cpu_device import CpuDevice
from mlirt.dialects.fused.epilogue import accumulator_type
from mlirt.dialects.fused.window import WindowKind, WindowOp
from mlirt.dialects.integer_list import integers
from mlirt.dialects.kernel.core import ReduceKind
from mlirt.dialects.symbolic import Dim, floor_div, maximum, minimum
from mlirt.dialects.tensor_types import byte_width, dims, element_of, integer_range
from mlirt.kernels.lib.cpu.register_tiles.tile_code import TileCode
from mlirt.kernels.lib.cpu.register_tiles.tile_rows import Grid, Place, TileRows
from mlirt.kernels.lib.cpu.register_tiles.tile_tasks import Tasks, Work, choose_tasks
from mlirt.kernels.lib.language import Index, Value, kernel
from mlirt.kernels.lib.language.tile_words import combine, fill
from mlirt.kernels.lib.language.words import constant, float_of, size
from mlirt.kernels.lib.tactics.lowering import Lowering

OPS = (WindowOp,)
TARGETS = frozenset({"cpu"})
PRIORITY = 20

_ROW, _PIXEL = 2, 3
_PIXELS_OF_32_REGISTERS, _PIXELS_OF_16 = 14, 7


@dataclass(frozen=True)
class Axis:
    """One spatial axis of a window over `length` cells, with `count` results."""

    taps: int
    stride: int
    pre: int
    post: int
    length: Dim
    count: Dim

    @property
    def first_inside(self) -> int:
        """The first result whose window does not start before the input."""
        return -(-self.pre // self.stride)

    @property
    def past_inside(self) -> Dim:
        """The first result after it whose window ends behind the input."""
        fitting = floor_div(self.length + self.pre - self.taps, self.stride) + 1
        return minimum(self.count, maximum(self.first_inside, fitting))

    @property
    def stays_inside(self) -> bool:
        return self.first_inside == 0 and self.past_inside == self.count

    @property
    def stays_in_padding(self) -> bool:
        """Whether no window reaches beyond the padded input."""
        reach, room = (self.count - 1) * self.stride + self.taps, self.length + self.pre + self.post
        return isinstance(reach, int) and isinstance(room, int) and reach <= room


def lower(op: WindowOp, lowering: Lowering) -> bool:
    axes = _axes(op, lowering)
    if axes is None:
        return False
    lanes = lowering.target.vector_bits // 32
    rows, columns = axes
    cpu = lowering.target.cpu
    most = _PIXELS_OF_32_REGISTERS if cpu.registers >= 32 else _PIXELS_OF_16
    pixels = _tile_pixels(columns.past_inside - columns.first_inside, most, cpu)
    batch, blocks, *_ = dims(op.output.type)
    assert isinstance(blocks, int)
    work = Work(
        rows=rows.count,
        panels=blocks,
        batch=batch,
        row_bytes=columns.count * (rows.stride * columns.stride * lanes * byte_width(element_of(op.input.type))),
        weight_bytes=0,
        cycles=columns.count * (rows.taps * columns.taps),
    )
    k = lowering.kernel("window")
    code = TileCode(k, op, lowering, lanes)
    grid = Grid(batch, rows.count, columns.count, blocks, pixels)
    WindowKernel(code, op, axes, grid, choose_tasks(work, lowering.target.threads, cpu.tiles)).write()
    k.finish(op)
    return True


def _tile_pixels(count: Dim, most: int, cpu: CpuDevice) -> int:
    """The tile size that minimises the cost of `count` pixels; the remainder is computed pixel by pixel."""
    if not isinstance(count, int):
        return most

    def cost(size: int) -> float:
        return count // size * max(size / cpu.loads, cpu.latency) + count % size * cpu.latency

    return min(range(1, most + 1), key=cost)


def _axes(op: WindowOp, lowering: Lowering) -> tuple[Axis, Axis] | None:
    """The axes of a window that tiles can compute."""
    lanes = lowering.target.vector_bits // 32
    if not is_blocked(op.output.type) or dims(op.output.type)[-1] != lanes or op.axes() != (_ROW, _PIXEL):
        return None
    if not _has_tiles(op) or any(step != 1 for step in integers(op.dilation)):
        return None
    pads = [[pad for pad in side.dims() if isinstance(pad, int)] for side in (op.pre_padding, op.post_padding)]
    if any(len(side) != 2 or min(side) < 0 for side in pads):
        return None
    lengths, counts = dims(op.input.type), dims(op.output.type)
    columns = zip(integers(op.window), integers(op.stride), *pads, lengths[_ROW:], counts[_ROW:], strict=False)
    rows, pixels = (Axis(*column) for column in columns)
    if (
        op.kind.data is WindowKind.AVERAGE
        and op.includes_padding
        and not (rows.stays_in_padding and pixels.stays_in_padding)
    ):
        return None
    return rows, pixels


def _has_tiles(op: WindowOp) -> bool:
    """Whether the elements are floats, or bytes of which the largest is wanted as an int32."""
    element, accumulator = element_of(op.input.type), accumulator_type(op.epilogue)
    if element == accumulator == f32:
        return True
    return op.kind.data is WindowKind.MAX and byte_width(element) == 1 and accumulator == i32


class WindowKernel(TileRows):
    """A tile: `best = start; for r, for s: best = combine(best, pixels); finish(best)`."""

    def __init__(self, code: TileCode, op: WindowOp, axes: tuple[Axis, Axis], grid: Grid, tasks: Tasks) -> None:
        super().__init__(code, grid, tasks)
        self.op, self.rows, self.columns = op, *axes
        self.steps = code.input_steps
        self.input = self.k.named(self.k.buffer(op.input), "x", keep=True)

    @kernel
    def start_task(self, batch: Value, panel: Value) -> tuple[Value, ...]:
        x_start = batch * size("x_batch", self.steps[0]) + panel * size("x_block", self.steps[1])
        return (x_start,)

    @kernel
    def row(self, place: Place, first: Index, last: Value) -> None:
        """Tiles of pixels whose windows stay in the input; the others, and what fills no tile, one by one."""
        columns, count = self.columns, self.grid.pixels
        down = self._taps(self.rows, place.row, "row")
        inside = columns.past_inside - columns.first_inside
        low = size("first_inside", columns.first_inside)
        high = size("past_tiles", columns.first_inside + floor_div(inside, count) * count)
        for pixel in range(low, high, count):
            left = pixel * size("stride_column", columns.stride) - size("pad_column", columns.pre)
            self._tile(place, pixel, count, down, (left, 0, size("window_columns", columns.taps)))
        if not columns.stays_inside or inside % count != 0:
            in_tiles = high - low
            for number in range(first, last - in_tiles):
                pixel = number if number < low else number + in_tiles
                self._tile(place, pixel, 1, down, self._taps(columns, pixel, "column"))

    @kernel
    def _taps(self, axis: Axis, position: Index, name: str) -> tuple[Value, Index, Index]:
        """Where a window starts along an axis, and its first and last tap in the input."""
        start = position * size(f"stride_{name}", axis.stride) - size(f"pad_{name}", axis.pre)
        taps = size(f"window_{name}s", axis.taps)
        if axis.stays_inside:
            return start, 0, taps
        low, high = max(0 - start, 0), min(size(f"input_{name}s", axis.length) - start, taps)
        return start, low, high

    @kernel
    def _tile(
        self, place: Place, pixel: Index, pixels: int, down: tuple[Index, ...], across: tuple[Index, ...]
    ) -> None:
        lanes, x = self.code.lanes, self.input
        kind = ReduceKind.MAX if self.op.kind.data is WindowKind.MAX else ReduceKind.ADD
        (top, low, high), (left, first, last) = down, across
        row_step = size("x_row", self.steps[_ROW])
        x_at = place.task[0] + top * row_step + left * lanes
        best = fill(self._start(), pixels, 1, lanes)
        for r in range(low, high):
            for s in range(first, last):
                at = x_at + r * row_step + s * lanes
                best = combine(kind, best, x, at, lanes * self.columns.stride)
        factor = self._factor((low, high), (first, last))
        self.code.finish(best, self.spans(place, place.panel, pixel), None, None, factor)

    def _start(self) -> Value:
        """What the first element of a window is combined with."""
        accumulator = accumulator_type(self.op.epilogue)
        if accumulator == f32:
            return constant(float("-inf") if self.op.kind.data is WindowKind.MAX else 0.0, f32)
        return constant(integer_range(accumulator)[0], accumulator)

    @kernel
    def _factor(self, down: tuple[Index, Index], across: tuple[Index, Index]) -> Value | None:
        """What the sum of a window is multiplied with to give the mean; 0 where there are no cells."""
        k, op = self.k, self.op
        if op.kind.data is not WindowKind.AVERAGE:
            return None
        if op.includes_padding:
            return k.scalar(1 / (self.rows.taps * self.columns.taps), f32)
        cells = max(down[1] - down[0], 0) * max(across[1] - across[0], 0)
        share = 1.0 / float_of(max(cells, 1), f32)
        return share
