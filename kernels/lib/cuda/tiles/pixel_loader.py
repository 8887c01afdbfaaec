"""The im2col view of a convolution's input: one row per pixel of the result, tap by tap and in each the channels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlirt.dialects.fused.contraction import ConvolutionOp
from mlirt.dialects.kernel.fragment_map import element_type
from mlirt.dialects.symbolic import Dim, product
from mlirt.dialects.tensor_types import dims
from mlirt.kernels.lib.cuda.tiles.loaders import MIN_COPY, Loader
from mlirt.kernels.lib.cuda.tiles.tile_memory import TileMemory
from mlirt.kernels.lib.language import Index, Value, builder, kernel
from mlirt.kernels.lib.language.simt_words import (
    Access,
    copy_async,
    count_where,
    elementwise,
    load_fragment,
    store_fragment,
)
from mlirt.kernels.lib.language.words import constant, extent, split, static_range
from mlirt.kernels.lib.nests.convolution_operands import ConvolutionOperands


@dataclass(frozen=True)
class Pixels:
    """What an int8 convolution slides over its input: `wide` channels of a group are read at once.

    Cells outside of the input hold `filling`.
    """

    op: ConvolutionOp
    channels: int
    wide: int
    filling: int

    @property
    def taps(self) -> int:
        count = product(dims(self.op.kernel.type)[2:])
        assert isinstance(count, int)
        return count

    @property
    def depth(self) -> int:
        return self.taps * self.channels

    @property
    def per_image(self) -> Dim:
        """Pixels of one image of the result."""
        return product(dims(self.op.output.type)[2:])

    @property
    def count(self) -> Dim:
        """Pixels of all images of the result."""
        return dims(self.op.output.type)[0] * self.per_image

    @property
    def is_async(self) -> bool:
        """Whether the copies run by themselves; they could fill in nothing but zeros."""
        return self.wide >= MIN_COPY and not self.filling


@dataclass(frozen=True)
class _Row:
    """A pixel of the result: where its image starts, where its window starts, and whether there is such a pixel."""

    image: Value
    starts: Sequence[Value]
    exists: bool


class PixelLoader(Loader):
    """Each thread brings `wide` neighbouring channels of some pixels, a fixed number of rows apart."""

    def __init__(
        self, pixels: Pixels, tile: TileMemory, thread: Value, threads: int, first: Value, group: Value
    ) -> None:
        """`first` is the tile's first pixel."""
        k, self.pixels, self.tile = builder(), pixels, tile
        self.is_async = pixels.is_async
        self.across = tile.width // pixels.wide
        self.lines = range(0, tile.lines, threads // self.across)
        self.buffer, self.strides = k.bits(pixels.op.input), k.strides(pixels.op.input)
        self.source = ConvolutionOperands(k, pixels.op)
        self.line, self.column, self.first_channel, self.rows = self._place(thread, first, group)

    @property
    def can_fetch(self) -> bool:
        return True

    @kernel
    def _place(self, thread: Value, first: Value, group: Value) -> tuple[Value, Value, Value, list[_Row]]:
        """The first line and column of a thread, its first channel, and its pixels."""
        pixels, across = self.pixels, self.across
        line, column = thread // across, thread % across * pixels.wide
        first_channel = group * pixels.channels
        return line, column, first_channel, [self._row(first + (line + on)) for on in self.lines]

    @kernel
    def _row(self, pixel: Value) -> _Row:
        count, sizes = self.pixels.count, dims(self.pixels.op.output.type)[2:]
        exists = (isinstance(count, int) and count % self.tile.lines == 0) or pixel < extent(count)
        per_image = extent(self.pixels.per_image)
        image, rest = pixel // per_image, pixel % per_image
        starts = self.source.starts([image, image, *split(rest, sizes)])
        return _Row(image * self.strides[0], starts, exists)

    @kernel
    def _cell(self, row: _Row, along: Value) -> tuple[Value, bool]:
        """Where the channels at a place along the depth lie for a pixel, and whether they are in the input."""
        pixels = self.pixels
        tap, channel = along // pixels.channels, along % pixels.channels
        cells, inside = self.source.cells(row.starts, split(tap, dims(pixels.op.kernel.type)[2:]))
        index = row.image + (self.first_channel + channel) * self.strides[1]
        for cell, step in zip(cells, self.strides[2:], strict=True):
            index = index + cell * step
        return index, row.exists and inside

    @kernel
    def _places(self, step: Value) -> list[tuple[Value, bool]]:
        """For each line of this thread the index in the input, and whether it may be read."""
        along, depth = step * self.tile.width + self.column, self.pixels.depth
        within = depth % self.tile.width == 0 or along < depth
        cells = [self._cell(row, along) for row in self.rows]
        return [(index, within and inside) for index, inside in cells]

    @kernel
    def start(self, step: Value, stage: Index) -> None:
        tile, wide = self.tile, self.pixels.wide
        for line, (index, inside) in zip(self.lines, self._places(step), strict=True):
            valid = count_where(inside, wide)
            target = tile.at(stage, self.line + line, self.column)
            copy_async(self.buffer, index, tile.buffer, target, wide, valid)

    @kernel
    def fetch(self, step: Value, wanted: bool) -> list[Value]:
        wide, fragments = self.pixels.wide, list[Value]()
        for index, inside in self._places(step):
            condition = inside and wanted
            access = Access(static_range(wide), valid=count_where(condition, wide), wide=True)
            fragments = [*fragments, self._filled(load_fragment(self.buffer, index, access), condition)]
        return fragments

    @kernel
    def _filled(self, loaded: Value, inside: bool) -> Value:
        """What was read, which is zero outside of the input; there the filling is added."""
        element, filling = element_type(loaded), self.pixels.filling
        if inside is True or not filling:
            return loaded
        more = constant(0, element) if inside else constant(filling, element)

        def either(value: Value, other: Value) -> Value:
            return value | other

        return elementwise(either, element, loaded, more)

    @kernel
    def put(self, fragments: Sequence[Value], stage: Index) -> None:
        tile, access = self.tile, Access(static_range(self.pixels.wide), wide=True)
        for line, fragment in zip(self.lines, fragments, strict=True):
            store_fragment(fragment, tile.buffer, tile.at(stage, self.line + line, self.column), access)
