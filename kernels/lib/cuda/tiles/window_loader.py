"""The im2col view of a convolution's input by columns: one per pixel of the result, one line per tap and channel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import Attribute

from mlirt.dialects.fused.contraction import ConvolutionOp
from mlirt.dialects.kernel.buffers import memory
from mlirt.dialects.symbolic import Dim, product
from mlirt.dialects.tensor_types import byte_width, dims, element_of
from mlirt.kernels.lib.cuda.tiles.loaders import Loader, rounded
from mlirt.kernels.lib.cuda.tiles.tile_memory import TileMemory
from mlirt.kernels.lib.language import Index, Value, builder, kernel
from mlirt.kernels.lib.language.simt_words import Access, copy_async, count_where, load_fragment, store_fragment
from mlirt.kernels.lib.language.words import extent, place, split, static_range
from mlirt.kernels.lib.nests.convolution_operands import ConvolutionOperands


@dataclass(frozen=True)
class Window:
    """What a convolution slides over its input, and the order of the lines.

    The lines of one tap are its input channels. With `is_flat` they follow each other without gaps, so that a tile has
    lines of several taps; else each tap starts a new tile. `wide` pixels are neighbours in the input too: then there
    is one tap.
    """

    op: ConvolutionOp
    channels: int
    groups: int
    is_flat: bool
    wide: int

    @property
    def taps(self) -> int:
        sizes = dims(self.op.kernel.type)[2:]
        count = product(sizes)
        assert isinstance(count, int)
        return count

    @property
    def pixels(self) -> Dim:
        """Pixels of one image of the result."""
        return product(dims(self.op.output.type)[2:])

    @property
    def element(self) -> Attribute:
        return element_of(self.op.input.type)

    @property
    def is_rounded(self) -> bool:
        """Whether pixels become elements of the kernel's type as they are read."""
        return self.element != element_of(self.op.kernel.type)

    @kernel
    def place_of(self, column: Value) -> tuple[Value, Value]:
        """The image of a column, and the pixel of that."""
        if dims(self.op.output.type)[0] == 1:
            return place(0), column
        pixels = extent(self.pixels)
        return column // pixels, column % pixels

    def tiles_per_tap(self, depth: int) -> int:
        return -(-self.channels // depth)

    def steps(self, depth: int) -> int:
        """Tiles along the lines."""
        if self.is_flat:
            return -(-self.channels * self.taps // depth)
        return self.taps * self.tiles_per_tap(depth)


@dataclass(frozen=True)
class _Pixel:
    """A pixel of the result: where its image starts, where its window starts, and whether there is such a pixel."""

    image: Value
    starts: Sequence[Value]
    exists: bool


class WindowLoader(Loader):
    """Each thread brings every `step`-th line of one pixel, or of `wide` neighbouring ones.

    Pixels that are wider than the elements of the tile are rounded on their way, one by one.
    """

    def __init__(
        self, window: Window, tile: TileMemory, thread: Value, threads: int, first: Value, group: Value
    ) -> None:
        """`first` is the tile's first pixel."""
        k, self.window, self.tile = builder(), window, tile
        self.target = memory(tile.buffer).get_element_type()
        self.is_async = window.wide * byte_width(window.element) >= 4 and not window.is_rounded
        self.step = threads // (tile.width // window.wide)
        self.count = tile.lines // self.step
        self.buffer, self.strides = k.buffer(window.op.input), k.strides(window.op.input)
        self.source = ConvolutionOperands(k, window.op)
        self.line, self.column, self.first_channel, self.pixel = self._place(thread, first, group)

    @property
    def can_fetch(self) -> bool:
        return self.window.wide == 1

    @kernel
    def _place(self, thread: Value, first: Value, group: Value) -> tuple[Value, Value, Value, _Pixel]:
        """The first line and column of a thread, its first channel, and its pixel."""
        window, across = self.window, self.tile.width // self.window.wide
        line, column = thread // across, thread % across * window.wide
        return line, column, group * window.channels, self._pixel(first + column)

    @kernel
    def _pixel(self, column: Value) -> _Pixel:
        window = self.window
        _, _, *sizes = dims(window.op.output.type)
        columns = column_count(window.op)
        exists = (isinstance(columns, int) and columns % self.tile.width == 0) or column < extent(columns)
        image, pixel = window.place_of(column)
        offset = image * self.strides[0]
        if self.window.wide > 1:
            return _Pixel(offset + pixel, [], exists)
        return _Pixel(offset, self.source.starts([image, image, *split(pixel, sizes)]), exists)

    @kernel
    def _cell(self, tap: Value) -> tuple[Value, bool]:
        """Where the cell of a tap lies relative to the channel, and whether it is inside."""
        pixel = self.pixel
        if self.window.wide > 1:
            return pixel.image, pixel.exists
        cells, inside = self.source.cells(pixel.starts, split(tap, dims(self.window.op.kernel.type)[2:]))
        offset = pixel.image
        for cell, step in zip(cells, self.strides[2:], strict=True):
            offset = offset + cell * step
        return offset, pixel.exists and inside

    @kernel
    def _flat_lines(self, step: Value) -> list[tuple[Value, bool]]:
        """The index in the input of each line of this thread, and whether it exists."""
        window, found = self.window, list[tuple[Value, bool]]()
        total = window.channels * window.taps
        for number in static_range(self.count):
            line = step * self.tile.lines + self.line + number * self.step
            offset, inside = self._cell(line // window.channels)
            channel = self.first_channel + line % window.channels
            exists = inside and (total % self.tile.lines == 0 or line < total)
            found = [*found, (offset + channel * self.strides[1], exists)]
        return found

    @kernel
    def _channel(self, step: Value) -> tuple[Value, Value]:
        """The tap of a step, and the first channel (of the group) of this thread."""
        lines, per_tap = self.tile.lines, self.window.tiles_per_tap(self.tile.lines)
        if self.window.taps == 1:
            return place(0), step * lines + self.line
        return step // per_tap, step % per_tap * lines + self.line

    @kernel
    def _tap_lines(self, step: Value) -> list[tuple[Value, bool]]:
        """As `_flat_lines`, where a tile has lines of one tap."""
        channels, found = self.window.channels, list[tuple[Value, bool]]()
        tap, channel = self._channel(step)
        offset, inside = self._cell(tap)
        for number in static_range(self.count):
            here = channel + number * self.step
            exists = inside and (channels % self.tile.lines == 0 or here < channels)
            found = [*found, (offset + (self.first_channel + here) * self.strides[1], exists)]
        return found

    @kernel
    def start(self, step: Value, stage: Index) -> None:
        wide, tile = self.window.wide, self.tile
        lines = self._flat_lines(step) if self.window.is_flat else self._tap_lines(step)
        for number, (index, exists) in enumerate(lines):
            target = tile.at(stage, self.line + number * self.step, self.column)
            copy_async(self.buffer, index, tile.buffer, target, wide, count_where(exists, wide))

    @kernel
    def fetch(self, step: Value, wanted: bool) -> list[Value]:
        if not self.window.is_flat:
            return [self._fetch_tap(step, wanted)]
        fragments = list[Value]()
        for index, exists in self._flat_lines(step):
            access = Access([0], valid=count_where(exists and wanted, 1))
            fragments = [*fragments, rounded(load_fragment(self.buffer, index, access), self.target)]
        return fragments

    @kernel
    def _fetch_tap(self, step: Value, wanted: bool) -> Value:
        """All lines of this thread at once: they are channels of one cell."""
        channels, stride, apart, valid = self.window.channels, self.strides[1], self.step, None
        tap, channel = self._channel(step)
        offset, inside = self._cell(tap)
        index = offset + (self.first_channel + channel) * stride
        if channels % self.tile.lines:
            valid = max(channels - channel + (apart - 1), 0) // apart
        condition = inside and wanted
        if condition is not True:
            valid = (self.count if valid is None else valid) if condition else 0
        lines = [number * apart for number in static_range(self.count)]
        if isinstance(stride, int):
            access = Access([line * stride for line in lines], valid=valid)
        else:
            access = Access(lines, stride, valid)
        return rounded(load_fragment(self.buffer, index, access), self.target)

    @kernel
    def put(self, fragments: Sequence[Value], stage: Index) -> None:
        tile, pitch = self.tile, self.step * self.tile.pitch
        start = tile.at(stage, self.line, self.column)
        if not self.window.is_flat:
            store_fragment(fragments[0], tile.buffer, start, Access([n * pitch for n in static_range(self.count)]))
        else:
            for number, fragment in enumerate(fragments):
                store_fragment(fragment, tile.buffer, start, Access([number * pitch]))


def column_count(op: ConvolutionOp) -> Dim:
    """Pixels of all images of the result."""
    sizes = dims(op.output.type)
    return sizes[0] * product(sizes[2:])
