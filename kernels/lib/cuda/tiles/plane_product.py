"""A convolution of planes by the matrix units of warps: a block fills lines of pixels, multiplies, and writes rows.

block (image, tile of rows, of columns, block of channels) {
  for each row of results that a row of the tile has (one, but of a deconvolution with strides) {
    for each slab of input channels {
      fill the lines that the windows of the tile meet; for each step add weights x lines
    }
    for each 16 output channels { keep the accumulators in shared memory; epilogue; store rows of pixels }
  }
}
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import prod

from xdsl.dialects.builtin import IntegerAttr, f32, i64

from mlirt.dialects.fused.contraction import ConvolutionOp
from mlirt.dialects.kernel.simt import MAX_ALIGNMENT, WARP
from mlirt.dialects.symbolic import Dim, ceil_div, product
from mlirt.dialects.tensor_types import dims, element_of
from mlirt.kernels.lib.cuda.tiles.alignment import is_multiple, widest_access
from mlirt.kernels.lib.cuda.tiles.loaders import rounded
from mlirt.kernels.lib.cuda.tiles.plane_lines import COLUMNS, LINE, ROWS, WARP_COLUMNS, WARPS, PlaneLines
from mlirt.kernels.lib.cuda.tiles.plane_windows import PooledResults, TileWindows
from mlirt.kernels.lib.cuda.tiles.problem import unit_kind
from mlirt.kernels.lib.epilogue import extra_operands, finished_fragment
from mlirt.kernels.lib.language import Value, build, kernel
from mlirt.kernels.lib.language.nest_words import linear_index
from mlirt.kernels.lib.language.simt_words import (
    Access,
    block_id,
    count_where,
    element_at,
    fragment,
    load_fragment,
    load_matrix,
    mma,
    part_of,
    shared_memory,
    store_fragment,
    sync_threads,
    thread_id,
    zeros,
)
from mlirt.kernels.lib.language.words import extent, is_inside, place, split, static_range
from mlirt.kernels.lib.loops.loop_nest import Affine, direct
from mlirt.kernels.lib.tactics.lowering import Lowering

_THREADS = WARPS * WARP
RESIDENT = 2
"""Blocks of a processor: one fills lines or writes results while another one multiplies."""
CHANNEL, SPATIAL = 1, 2
_QUAD = 4  # lanes that have the accumulators of a row
_APART = 8  # elements between rows of accumulators in shared memory, which avoid its conflicts so
_MAX_TOGETHER = 4  # pixels that a thread writes at once


class PlaneProduct:
    """The kernel of one convolution with `tiles` x 16 output channels a block."""

    def __init__(self, op: ConvolutionOp, lines: PlaneLines, tiles: int, lowering: Lowering) -> None:
        kind = unit_kind(element_of(op.kernel.type), element_of(op.kernel.type), lowering.target)
        assert kind is not None
        self.op, self.lines, self.tiles, self.kind = op, lines, tiles, kind
        self.k = k = lowering.kernel("convolution")
        places = lowering.placements
        self.element = element_of(op.kernel.type)
        self.depth = _volume(1, op.epilogue_dims()[SPATIAL:])
        self.inputs = _volume(1, dims(op.input.type)[SPATIAL:])
        self.input = direct(op.input, places[op.input])
        self.weights = k.weights(lowering.packed(op.kernel, partial(lines.packed, tiles)), "weights")
        self.extras = extra_operands(op, places)
        self.result = direct(op.output, places[op.output])
        self.pointers = [k.buffer(one.value, one.offset) for one in (self.input, *self.extras, self.result)]
        count, channels = dims(op.output.type)[CHANNEL], dims(op.input.type)[CHANNEL]
        assert isinstance(count, int)
        assert isinstance(channels, int)
        self.count, self.channels = count, channels
        self.across = -(-count // (tiles * ROWS))
        self.together = self._together(lowering)
        windows = TileWindows.of(op, lines)
        results = (self.extras, self.result, self.pointers)
        self.pooled = None if windows is None else PooledResults(op, windows, _THREADS, *results)

    def _together(self, lowering: Lowering) -> int:
        """Neighbouring pixels that a thread writes at once: as many as rows are aligned for."""
        steps, most = lowering.placements[self.op.output].strides, _MAX_TOGETHER
        most = min(most, widest_access(self.op.output, steps[:-1], lowering))
        while not is_multiple(self.depth[-1], most):
            most //= 2
        return most

    @property
    def grid(self) -> list[Dim]:
        """Images, tiles along each dimension, blocks of output channels."""
        tile = (*self.lines.rows, self.lines.width)
        places = [ceil_div(size, each) for size, each in zip(self.depth, self.lines.interleave, strict=True)]
        tiles = [ceil_div(size, own) for size, own in zip(places, tile, strict=True)]
        return [dims(self.op.output.type)[0], *tiles, self.across]

    def write(self) -> None:
        """Write the kernel and launch it before the convolution."""
        k = self.k
        build(k, self._write)
        if k.lowering.fits_int32((*self.op.operands, *self.op.results)):
            k.function.attributes["index_bits"] = IntegerAttr(32, i64)
        k.function.attributes["resident"] = IntegerAttr(RESIDENT, i64)
        k.finish(self.op, grid=(product(self.grid), 1, 1), block=[_THREADS])

    @kernel
    def _write(self) -> None:
        lines, thread = self.lines, thread_id()
        size, blank = lines.lines * LINE, lines.zero_lines * LINE
        pixels = shared_memory("pixels", size + blank, self.element, MAX_ALIGNMENT)
        accumulators = shared_memory("accumulators", ROWS * self._pitch, f32)
        image, z, y, x, across = split(block_id(), self.grid)
        first = [z * lines.rows[0], y * lines.rows[1], x * lines.width]
        if blank > 0 and thread * LINE < blank:
            store_fragment(
                zeros(self.element, LINE), pixels, thread * LINE + size, Access(static_range(LINE), wide=True)
            )
        channels = [across * (self.tiles * ROWS) + tile * ROWS for tile in static_range(self.tiles)]
        rows, pooled = prod(lines.interleave[:2]), self.pooled
        kept = [pooled.begin() for _ in channels] if pooled is not None and rows > 1 else []
        for row in static_range(rows):
            totals = self._products(pixels, thread, image, first, across, row)
            found = list[list[Value]]()
            for tile in static_range(self.tiles):
                sync_threads()
                begin, size = tile * WARP_COLUMNS * _QUAD, WARP_COLUMNS * _QUAD
                self._keep([part_of(total, begin, size) for total in totals], accumulators, thread)
                sync_threads()
                if pooled is None:
                    self._store(accumulators, thread, image, first, channels[tile], row)
                elif rows == 1:
                    own = pooled.add(pooled.begin(), accumulators, self._pitch, thread, image, channels[tile])
                    pooled.write(own, thread, image, first, channels[tile])
                else:
                    found += [pooled.add(kept[tile], accumulators, self._pitch, thread, image, channels[tile])]
            kept = found
        if pooled is not None and rows > 1:
            for tile in static_range(self.tiles):
                pooled.write(kept[tile], thread, image, first, channels[tile])

    @kernel
    def _products(
        self, pixels: Value, thread: Value, image: Value, first: Sequence[Value], across: Value, row: int
    ) -> list[Value]:
        """The accumulators of the results that a pixel has in a row of them."""
        lines, side = self.lines, self.lines.interleave[-1]
        phases = [row * side + own for own in static_range(side)]
        totals = [zeros(f32, self.tiles * WARP_COLUMNS * _QUAD) for _ in phases]
        start = self._start(thread)
        if lines.slabs == 1:
            if row == 0:
                self._fill(pixels, thread, image, first, place(0))
                sync_threads()
            totals = [
                self._multiply(totals[own], pixels, thread, start, across, phases[own]) for own in static_range(side)
            ]
        else:
            for number in range(lines.slabs):
                slab = place(number)
                sync_threads()
                self._fill(pixels, thread, image, first, slab)
                sync_threads()
                part = across * lines.slabs + slab
                totals = [
                    self._multiply(totals[own], pixels, thread, start, part, phases[own]) for own in static_range(side)
                ]
        return totals

    @property
    def _pitch(self) -> int:
        """Between the channels of the accumulators in shared memory."""
        side = self.lines.interleave[-1]
        return WARPS * WARP_COLUMNS * COLUMNS * side + _APART * side

    @kernel
    def _fill(self, pixels: Value, thread: Value, image: Value, first: Sequence[Value], slab: Value) -> None:
        """The lines of a slab of channels; zeros outside of the image, and behind the last channel."""
        lines, (deep, high, wide) = self.lines, self.lines.sizes
        for step in range(-(-lines.lines // _THREADS)):
            number = step * _THREADS + thread
            if lines.lines % _THREADS == 0 or number < lines.lines:
                block, z, y, x = split(number, (lines.blocks, deep, high, wide))
                channel = (slab * lines.blocks + block) * LINE
                for pixel in static_range(lines.fold):
                    at = self._cell(first, [z, y, x + pixel * lines.dilations[-1]])
                    value = self._cells(image, channel, at)
                    target = number * LINE + pixel * lines.part
                    store_fragment(value, pixels, target, Access(static_range(lines.part), wide=True))
                rest = LINE - lines.fold * lines.part
                if rest > 0:
                    target = number * LINE + lines.fold * lines.part
                    store_fragment(zeros(self.element, rest), pixels, target, Access(static_range(rest)))

    @kernel
    def _cell(self, first: Sequence[Value], offsets: Sequence[Value]) -> list[Value]:
        """A cell of the input: at offsets from the one where the window of the first pixel starts."""
        found, strides = list[Value](), self.lines.strides
        for axis in static_range(3):
            found.append(first[axis] * strides[axis] + offsets[axis] - extent(self.lines.padding[axis]))
        return found

    @kernel
    def _cells(self, image: Value, channel: Value, at: Sequence[Value]) -> Value:
        """The channels of a cell from one on, zeros where there are none."""
        inside, index = True, image * self._step(self.input, 0) + channel * self._step(self.input, CHANNEL)
        for axis in static_range(3):
            if axis >= self._missing:
                inside = inside and is_inside(at[axis], extent(self.inputs[axis]))
                index = index + at[axis] * self._step(self.input, axis - self._missing + SPATIAL)
        count = self.lines.part
        if self.channels % (self.lines.blocks * count):
            count = min(max(self.channels - channel, 0), count)
        step = extent(self.input.steps[CHANNEL])
        access = Access(static_range(self.lines.part), stride=step, valid=count_where(inside, count))
        return rounded(load_fragment(self.pointers[0], index, access), self.element)

    def _step(self, one: Affine, axis: int) -> Value:
        return extent(one.steps[axis])

    @property
    def _missing(self) -> int:
        """How many dimensions a volume has more."""
        return 3 - len(self.op.spatial())

    @kernel
    def _start(self, thread: Value) -> Value:
        """The line from which a lane gives a row of a matrix of pixels, of the first group."""
        lines, matrix = self.lines, thread % WARP // 8
        column = matrix // 2 * COLUMNS + thread % 8
        row = thread // WARP if lines.is_wide else thread // WARP * 2
        z, y = row // lines.rows[1], row % lines.rows[1]
        plane = z * lines.strides[0] * lines.sizes[1] + y * lines.strides[1]
        return plane * lines.sizes[2] + column * lines.strides[2]

    @kernel
    def _multiply(self, total: Value, pixels: Value, thread: Value, start: Value, slab: Value, phase: int) -> Value:
        """The accumulators of a phase with the products of its groups of a slab added."""
        lines, lane, second = self.lines, thread % WARP, thread % WARP // 8 % 2
        here = (slab * lines.steps) * (self.tiles * WARP * _QUAD) + lane * _QUAD
        offsets = [
            tile * WARP * _QUAD + register for tile in static_range(self.tiles) for register in static_range(_QUAD)
        ]
        begin, end = lines.starts[phase : phase + 2]
        for step in static_range(begin, end):
            own, *others = lines.phases[phase][2 * (step - begin) : 2 * (step - begin) + 2]
            if others:
                line = start + own + second * (others[0] - own)
            else:
                line = start + own if second == 0 else place(lines.lines)
            b = load_matrix(pixels, line * LINE, 2, lines.pair_step * LINE)
            a = load_fragment(self.weights, here + step * self.tiles * WARP * _QUAD, Access(offsets, wide=True))
            total = mma(self.kind, total, a, b, self.tiles, WARP_COLUMNS)
        return total

    @kernel
    def _keep(self, totals: Sequence[Value], accumulators: Value, thread: Value) -> None:
        """The accumulators of 16 channels in shared memory, the results of a row side by side."""
        lane, warp, side = thread % WARP, thread // WARP, len(totals)
        index = lane // _QUAD * self._pitch + warp * (WARP_COLUMNS * COLUMNS * side) + lane % _QUAD * (2 * side)
        offsets = [
            half * 8 * self._pitch + (column * COLUMNS + pair) * side + own
            for column in static_range(WARP_COLUMNS)
            for half in static_range(2)
            for pair in static_range(2)
            for own in static_range(side)
        ]
        if side == 1:
            store_fragment(totals[0], accumulators, index, Access(offsets, wide=True, together=2))
        else:
            numbers = range(WARP_COLUMNS * _QUAD)
            kept = fragment([element_at(total, number) for number in numbers for total in totals])
            store_fragment(kept, accumulators, index, Access(offsets, wide=True, together=4 if side % 2 == 0 else 2))

    @kernel
    def _store(
        self, accumulators: Value, thread: Value, image: Value, first: Sequence[Value], channel: Value, phase: int
    ) -> None:
        """The results of 16 channels: neighbouring threads have neighbouring pixels of a row."""
        lines, (deep, high, wide) = self.lines, self.lines.interleave
        each = WARPS * WARP_COLUMNS * COLUMNS * wide // self.together
        for step in range(ROWS * each // _THREADS):
            number = step * _THREADS + thread
            own, pixel = number // each, number % each * self.together
            row, x = pixel // (lines.width * wide), pixel % (lines.width * wide)
            at = [
                _interleaved(first[0] + row // lines.rows[1], deep, phase // high),
                _interleaved(first[1] + row % lines.rows[1], high, phase % high),
                _interleaved(first[2], wide, 0) + x,
            ]
            exists = True
            for axis in static_range(3):
                if axis >= self._missing:
                    exists = exists and at[axis] < extent(self.depth[axis])
            if self.count % (self.tiles * ROWS):
                exists = exists and channel + own < self.count
            if exists:
                kept = load_fragment(
                    accumulators, own * self._pitch + pixel, Access(static_range(self.together), wide=True)
                )
                self._finish(kept, [image, channel + own, *at[self._missing :]])

    @kernel
    def _finish(self, total: Value, at: Sequence[Value]) -> None:
        """Write what the epilogue makes of neighbouring pixels."""
        values = [total, *[self._extra(number, at) for number in range(len(self.extras))]]
        index, access = linear_index(self.result, at), Access(static_range(self.together), wide=True)
        element = element_of(self.op.output.type)
        store_fragment(finished_fragment(self.op.epilogue, values, element), self.pointers[-1], index, access)

    @kernel
    def _extra(self, number: int, at: Sequence[Value]) -> Value:
        """An extra operand of these pixels: one element for all, or one for each."""
        index, step = linear_index(self.extras[number], at), self.extras[number].steps[-1]
        if step == 0:
            return self.pointers[1 + number][index]
        access = Access(static_range(self.together), stride=None if step == 1 else extent(step))
        return load_fragment(self.pointers[1 + number], index, access)


@kernel
def _interleaved(pixel: Value, stride: int, remainder: int) -> Value:
    """The result with a remainder of a pixel of the tile, along an axis."""
    return pixel if stride == 1 else pixel * stride + remainder


def _volume(fill: int, sizes: Sequence[Dim]) -> list[Dim]:
    """Numbers of three dimensions, of which images lack the first one."""
    return [*[fill] * (3 - len(sizes)), *sizes]


__all__ = ["CHANNEL", "RESIDENT", "SPATIAL", "PlaneProduct"]
