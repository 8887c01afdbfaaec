"""Windows of a tile of pixels, pooled while the sums of a convolution pass through shared memory.

A window lies in one tile. A thread has whole windows of a channel, those of neighbouring threads are neighbours along a
row, so that what they write is too. Where a pixel of the tile has results in several rows (a deconvolution with
strides) these pass one after the other, and a thread keeps what its windows have come to so far. Windows that are added
up are shared by the threads of a channel, and a tile has one sum for each channel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from xdsl.dialects.builtin import f32

from mlirt.dialects.fused.contraction import ConvolutionOp
from mlirt.dialects.fused.window import WindowKind
from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_types import dims, element_of
from mlirt.kernels.lib.cuda.tiles.plane_lines import ROWS, PlaneLines
from mlirt.kernels.lib.epilogue import finished_fragment
from mlirt.kernels.lib.language import Value, kernel
from mlirt.kernels.lib.language.nest_words import linear_index
from mlirt.kernels.lib.language.simt_words import Access, element_at, load_fragment, shuffle_xor
from mlirt.kernels.lib.language.words import cast, constant, extent, place, split, static_range
from mlirt.kernels.lib.loops.loop_nest import Affine

_SPATIAL = 2


@dataclass(frozen=True)
class TileWindows:
    """The windows of `sizes` of a tile of `lines`: how many there are along each dimension."""

    lines: PlaneLines
    sizes: tuple[int, int, int]

    @staticmethod
    def of(op: ConvolutionOp, lines: PlaneLines) -> TileWindows | None:
        """Those of an op that pools, None for another one."""
        if op.pooling is None and op.totals is None:
            return None
        sizes = [1] * len(op.spatial()) if op.pooling is None else op.pooling.sizes()
        deep, high, wide = (*[1] * (3 - len(op.spatial())), *sizes)
        return TileWindows(lines, (deep, high, wide))

    @property
    def rows(self) -> tuple[int, int]:
        """Rows of pixels of the tile that a window has in depth and height, of each remainder of a deconvolution."""
        deep, high, _ = (size // own for size, own in zip(self.sizes, self.lines.interleave, strict=True))
        return deep, high

    @property
    def counts(self) -> tuple[int, int, int]:
        """Windows along each dimension."""
        deep, high = (own // each for own, each in zip(self.lines.rows, self.rows, strict=True))
        return deep, high, self.lines.width * self.lines.interleave[-1] // self.sizes[-1]

    def are_added(self, op: ConvolutionOp) -> bool:
        """Whether the boxes of an op that adds windows up are those of the tile, shared by all its threads."""
        if op.totals is None:
            return True
        box = (*[1] * (3 - len(op.spatial())), *op.totals.sizes())
        return box == self.counts and prod(box) % ROWS == 0

    @property
    def are_whole(self) -> bool:
        """Whether each window lies in one tile, with equally many rows of each remainder."""
        deep, high, wide = self.lines.interleave
        tile = (*self.lines.rows, self.lines.width * wide)
        own = (*self.rows, self.sizes[-1])
        shared = self.sizes[0] % deep == 0 and self.sizes[1] % high == 0
        return shared and all(each > 0 and size % each == 0 for size, each in zip(tile, own, strict=True))


class PooledResults:
    """Pools the sums of 16 channels that a tile has in shared memory, and writes what its windows have come to."""

    def __init__(
        self,
        op: ConvolutionOp,
        windows: TileWindows,
        threads: int,
        extras: Sequence[Affine],
        result: Affine,
        pointers: Sequence[Value],
    ) -> None:
        self.op, self.windows, self.threads = op, windows, threads
        self.kind = WindowKind.ADD if op.pooling is None else op.pooling.kind.data
        self.element, self.adds_up = element_of(op.output.type), op.totals is not None
        self.extras, self.result, self.pointers = extras, result, pointers
        count, self.missing = dims(op.output.type)[1], 3 - len(op.spatial())
        assert isinstance(count, int)
        self.count = count
        spatial = dims(op.output.type)[_SPATIAL:] if op.totals is None else op.totals.added()
        self.lengths: list[Dim] = [*[1] * self.missing, *spatial]

    @property
    def each(self) -> int:
        """Windows of a thread."""
        return -(-ROWS * prod(self.windows.counts) // self.threads)

    @kernel
    def begin(self) -> list[Value]:
        """What no element of a window has come to."""
        return [constant(float("-inf") if self.kind is WindowKind.MAX else 0.0, f32) for _ in static_range(self.each)]

    @kernel
    def add(
        self, pooled: Sequence[Value], accumulators: Value, pitch: int, thread: Value, image: Value, channel: Value
    ) -> list[Value]:
        """What windows have come to with the rows of 16 channels that are in shared memory."""
        (deep, high), wide, lines = self.windows.rows, self.windows.sizes[-1], self.windows.lines
        found = list[Value]()
        for number in static_range(self.each):
            own, at = self._window(thread, number)
            here = self._existing(channel + own)
            extras = [self._extra(one, image, here) for one in static_range(len(self.extras))]
            total = pooled[number]
            for z in static_range(deep):
                for y in static_range(high):
                    row = (at[0] * deep + z) * lines.rows[1] + at[1] * high + y
                    first = own * pitch + row * (lines.width * lines.interleave[-1]) + at[2] * wide
                    access = Access(static_range(wide), wide=wide % 2 == 0)
                    values = finished_fragment(
                        self.op.epilogue, [load_fragment(accumulators, first, access), *extras], self.element
                    )
                    for x in static_range(wide):
                        value = cast(element_at(values, x), self.element, f32)
                        total = max(total, value) if self.kind is WindowKind.MAX else total + value
            found += [total]
        return found

    @kernel
    def write(
        self, pooled: Sequence[Value], thread: Value, image: Value, first: Sequence[Value], channel: Value
    ) -> None:
        """Write the windows of 16 channels, or what they add up to; `first` is the tile's first pixel."""
        if self.adds_up:
            self._write_total(pooled, thread, image, first, channel)
            return
        for number in static_range(self.each):
            own, at = self._window(thread, number)
            here, exists = self._here(first, at)
            exists = exists and own < ROWS
            if self.count % ROWS:
                exists = exists and channel + own < self.count
            if exists:
                value = self._mean(pooled[number])
                index = linear_index(self.result, [image, channel + own, *here[self.missing :]])
                self.pointers[-1][index] = cast(value, f32, self.element)

    @kernel
    def _write_total(
        self, pooled: Sequence[Value], thread: Value, image: Value, first: Sequence[Value], channel: Value
    ) -> None:
        """The sum of all windows of a channel of the tile: neighbouring threads have those of one channel."""
        total, zero = constant(0.0, f32), constant(0.0, f32)
        for number in static_range(self.each):
            _, at = self._window(thread, number)
            _, exists = self._here(first, at)
            total = total + (self._mean(pooled[number]) if exists else zero)
        lanes = self.threads // ROWS
        for step in static_range(lanes.bit_length() - 1):
            total = total + shuffle_xor(total, 1 << step)
        own, tile, lines = thread // lanes, list[Value](), self.windows.lines
        for axis in static_range(3):
            tile += [first[axis] // (*lines.rows, lines.width)[axis]]
        exists = thread % lanes == 0
        if self.count % ROWS:
            exists = exists and channel + own < self.count
        if exists:
            index = linear_index(self.result, [image, channel + own, *tile[self.missing :]])
            self.pointers[-1][index] = cast(total, f32, self.element)

    @kernel
    def _mean(self, total: Value) -> Value:
        return total * (1 / prod(self.windows.sizes)) if self.kind is WindowKind.AVERAGE else total

    @kernel
    def _here(self, first: Sequence[Value], at: Sequence[Value]) -> tuple[list[Value], bool]:
        """A window of the tile among all of the channel, and whether it exists."""
        here, exists = list[Value](), True
        for axis in static_range(3):
            window = first[axis] * self.windows.lines.interleave[axis] // self.windows.sizes[axis] + at[axis]
            here += [window]
            if axis >= self.missing:
                exists = exists and window < extent(self.lengths[axis])
        return here, exists

    @kernel
    def _window(self, thread: Value, number: int) -> tuple[Value, list[Value]]:
        """The channel of a window of a thread, and its place in the tile; the last ones may be of none."""
        if self.adds_up:
            lanes = self.threads // ROWS
            return thread // lanes, split(thread % lanes + number * lanes, self.windows.counts)
        own, at = split(thread + number * self.threads, (2 * self.threads * ROWS, prod(self.windows.counts)))
        return own, split(at, self.windows.counts)

    @kernel
    def _existing(self, channel: Value) -> Value:
        return min(channel, extent(self.count) - 1)

    @kernel
    def _extra(self, number: int, image: Value, channel: Value) -> Value:
        """An extra operand of a channel, the same for all its pixels."""
        at = [image, channel, *[place(0) for _ in static_range(3 - self.missing)]]
        return self.pointers[1 + number][linear_index(self.extras[number], at)]


__all__ = ["PooledResults", "TileWindows"]
