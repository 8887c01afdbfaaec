"""Pooling of blocked tensors on register tiles: some pixels of a row at a time, one where a window leaves the input."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerType, f32, i32
from xdsl.ir import SSAValue

from mlirt.dialects.blocked_layout import is_blocked
from mlirt.dialects.cpu_device import CpuDevice
from mlirt.dialects.fused.window import WindowKind, WindowOp
from mlirt.dialects.integer_list import integers
from mlirt.dialects.kernel.core import ReduceKind
from mlirt.dialects.kernel.tile import TileFillOp
from mlirt.dialects.kernel.tile_products import TileCombineOp
from mlirt.dialects.symbolic import Dim, floor_div, maximum, minimum
from mlirt.dialects.tensor_types import byte_width, dims, element_of, integer_range
from mlirt.passes.lowering.loops.reduction_nest import accumulator_of
from mlirt.passes.lowering.lowering import Lowering
from mlirt.passes.lowering.register_tiles.tile_code import TileCode
from mlirt.passes.lowering.register_tiles.tile_rows import Grid, Place, TileRows
from mlirt.passes.lowering.register_tiles.tile_tasks import Tasks, Work, choose_tasks

OPS = (WindowOp,)
TARGETS = frozenset({"cpu"})
PRIORITY = 20

_ROW, _PIXEL = 2, 3
_PIXELS = {512: 14, 256: 7, 128: 7}


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
    most, cpu = _PIXELS[lowering.target.vector_bits], lowering.target.cpu
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
    """The size of tiles with which `count` pixels take least, those that fill no tile being computed one by one."""
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
    element, accumulator = element_of(op.input.type), accumulator_of(op.epilogue)
    if element == accumulator == f32:
        return True
    return op.kind.data is WindowKind.MAX and byte_width(element) == 1 and accumulator == i32


class WindowKernel(TileRows):
    """A tile: `best = start; for r, for s: best = combine(best, pixels); finish(best)`."""

    def __init__(self, code: TileCode, op: WindowOp, axes: tuple[Axis, Axis], grid: Grid, tasks: Tasks) -> None:
        super().__init__(code, grid, tasks)
        self.op, self.rows, self.columns = op, *axes
        self.steps = code.input_steps
        self.input = code.named(self.k.buffer(op.input), "x")

    def start_task(self, batch: SSAValue, panel: SSAValue) -> None:
        code, k = self.code, self.k
        at = k.add(k.mul(batch, code.size("x_batch", self.steps[0])), k.mul(panel, code.size("x_block", self.steps[1])))
        self.x_at = code.named(at, "x_start")

    def row(self, place: Place, first: SSAValue, last: SSAValue) -> None:
        """Tiles of pixels whose windows stay in the input; the others, and what fills no tile, one by one."""
        code, k, columns, count = self.code, self.k, self.columns, self.grid.pixels
        self.taps_down = self._taps(self.rows, place.row, "row")
        inside = columns.past_inside - columns.first_inside
        low = code.size("first_inside", columns.first_inside)
        high = code.size("past_tiles", columns.first_inside + floor_div(inside, count) * count)
        code.count(low, high, count, "pixel", lambda pixel: self.tile(place, pixel, None))
        if columns.stays_inside and inside % count == 0:
            return
        gap = code.named(k.sub(high, low), "in_tiles")

        def single(number: SSAValue) -> None:
            is_before = k.compare("slt", number, low)
            pixel = code.named(k.select(is_before, number, k.add(number, gap)), "pixel")
            self._tile(place, pixel, 1, self._taps(columns, pixel, "column"))

        code.count(first, k.sub(last, gap), 1, "number", single)

    def _taps(self, axis: Axis, position: SSAValue, name: str) -> tuple[SSAValue, SSAValue, SSAValue]:
        """Where a window starts along an axis, and its first and last tap in the input."""
        code, k = self.code, self.k
        start = k.sub(k.mul(position, code.size(f"stride_{name}", axis.stride)), code.size(f"pad_{name}", axis.pre))
        start = code.named(start, f"first_{name}")
        taps = code.size(f"window_{name}s", axis.taps)
        if axis.stays_inside:
            return start, k.constant(0), taps
        low = k.max(k.sub(k.constant(0), start), 0)
        high = k.min(k.sub(code.size(f"input_{name}s", axis.length), start), taps)
        return start, code.named(low, f"low_{name}"), code.named(high, f"high_{name}")

    def tile(self, place: Place, pixel: SSAValue, rows: SSAValue | None) -> None:
        code, k = self.code, self.k
        start = k.mul(pixel, code.size("stride_column", self.columns.stride))
        start = k.sub(start, code.size("pad_column", self.columns.pre))
        across = start, k.constant(0), code.size("window_columns", self.columns.taps)
        self._tile(place, pixel, self.grid.pixels, across)

    def _tile(self, place: Place, pixel: SSAValue, pixels: int, across: tuple[SSAValue, SSAValue, SSAValue]) -> None:
        code, k = self.code, self.k
        is_max = self.op.kind.data is WindowKind.MAX
        (top, low, high), (left, first, last) = self.taps_down, across
        row_step, pixel_step = code.size("x_row", self.steps[_ROW]), k.constant(code.lanes)
        at = k.add(k.add(self.x_at, k.mul(top, row_step)), k.mul(left, pixel_step))
        at = code.named(at, "x_at")
        fill = TileFillOp(self._start(), pixels, 1, code.lanes)
        step = k.constant(code.lanes * self.columns.stride)
        kind = ReduceKind.MAX if is_max else ReduceKind.ADD

        def combine(r: SSAValue, s: SSAValue, state: list[SSAValue]) -> list[SSAValue]:
            place = k.add(k.add(at, k.mul(r, row_step)), k.mul(s, pixel_step))
            return [code.named(k.value(TileCombineOp(kind, state[0], self.input, place, step)), "combined")]

        def down(r: SSAValue, state: list[SSAValue]) -> list[SSAValue]:
            return code.carry(first, last, 1, "s", state, lambda s, inner: combine(r, s, inner))

        best = code.named(k.value(fill), "best" if is_max else "sums")
        (best,) = code.carry(low, high, 1, "r", [best], down)
        spans = self.spans(place, place.panel, pixel)
        code.finish(best, spans, None, None, self._factor((low, high), (first, last)))

    def _start(self) -> SSAValue:
        """What the first element of a window is combined with."""
        accumulator = accumulator_of(self.op.epilogue)
        if accumulator == f32:
            return self.k.constant(float("-inf") if self.op.kind.data is WindowKind.MAX else 0.0, f32)
        return self.k.constant(integer_range(accumulator)[0], accumulator)

    def _factor(self, down: tuple[SSAValue, SSAValue], across: tuple[SSAValue, SSAValue]) -> SSAValue | None:
        """What the sum of a window is multiplied with to give the mean; 0 where there are no cells."""
        code, k, op = self.code, self.k, self.op
        if op.kind.data is not WindowKind.AVERAGE:
            return None
        if op.includes_padding:
            return k.scalar(1 / (self.rows.taps * self.columns.taps), f32)
        cells = k.mul(k.max(k.sub(down[1], down[0]), 0), k.max(k.sub(across[1], across[0]), 0))
        number = k.to_integer(k.max(cells, 1), IntegerType(32))
        divisor = k.value(arith.SIToFPOp(number, f32))
        return code.named(k.value(arith.DivfOp(k.constant(1.0, f32), divisor)), "share")
