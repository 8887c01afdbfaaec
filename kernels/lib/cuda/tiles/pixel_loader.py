"""The im2col view of a convolution's input: one row per pixel of the result, tap by tap and in each the channels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from mlirt.dialects.fused.contraction import ConvolutionOp
from mlirt.dialects.kernel.async_copy import CopyAsyncOp
from mlirt.dialects.kernel.core import YieldOp
from mlirt.dialects.kernel.fragment import LoadFragmentOp, StoreFragmentOp
from mlirt.dialects.kernel.fragment_map import MapFragmentOp, element_type
from mlirt.dialects.symbolic import Dim, product
from mlirt.dialects.tensor_types import dims
from mlirt.kernels.lib.builder.kernel_builder import KernelBuilder
from mlirt.kernels.lib.cuda.tiles.loaders import MIN_COPY, Loader
from mlirt.kernels.lib.cuda.tiles.tile_memory import TileMemory
from mlirt.kernels.lib.language import Value, build
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

    image: SSAValue
    starts: Sequence[Value]
    exists: SSAValue | None


class PixelLoader(Loader):
    """Each thread brings `wide` neighbouring channels of some pixels, a fixed number of rows apart."""

    def __init__(
        self,
        k: KernelBuilder,
        pixels: Pixels,
        tile: TileMemory,
        place: tuple[SSAValue, int],
        first: SSAValue,
        group: SSAValue,
    ) -> None:
        """`place` is the thread and how many there are, `first` the tile's first pixel."""
        self.k, self.pixels, self.tile = k, pixels, tile
        self.is_async = pixels.is_async
        thread, threads = place
        across = tile.width // pixels.wide
        self.line, self.column = k.div(thread, across), k.mul(k.rem(thread, across), pixels.wide)
        self.lines = range(0, tile.lines, threads // across)
        self.buffer = k.bits(pixels.op.input)
        self.strides = k.strides(pixels.op.input)
        self.source = ConvolutionOperands(k, pixels.op)
        self.first_channel = k.mul(group, pixels.channels)
        self.rows = [self._row(k.add(first, k.add(self.line, line))) for line in self.lines]

    def _row(self, pixel: SSAValue) -> _Row:
        k, op = self.k, self.pixels.op
        count = self.pixels.count
        whole = isinstance(count, int) and count % self.tile.lines == 0
        exists = None if whole else k.compare("slt", pixel, k.size(count))
        per_image = k.size(self.pixels.per_image)
        image, rest = k.div(pixel, per_image), k.rem(pixel, per_image)
        positions = list[Value]()
        for size in reversed(dims(op.output.type)[3:]):
            extent = k.size(size)
            positions.append(k.rem(rest, extent))
            rest = k.div(rest, extent)
        starts = build(k, self.source.starts, [image, image, rest, *reversed(positions)])
        return _Row(k.mul(image, self.strides[0]), starts, exists)

    def _cell(self, row: _Row, along: SSAValue) -> tuple[SSAValue, SSAValue | None]:
        """Where the channels at a place along the depth lie for a pixel, and whether they are in the input."""
        k, pixels = self.k, self.pixels
        tap, channel = k.div(along, pixels.channels), k.rem(along, pixels.channels)
        taps = list[Value]()
        for size in reversed(dims(pixels.op.kernel.type)[3:]):
            taps.append(k.rem(tap, k.size(size)))
            tap = k.div(tap, k.size(size))
        cells, inside = build(k, self.source.cells, row.starts, [tap, *reversed(taps)])
        index = k.add(row.image, k.mul(k.add(self.first_channel, channel), self.strides[1]))
        for cell, stride in zip(cells, self.strides[2:], strict=True):
            index = k.add(index, k.mul(cell, stride))
        return index, k.both(row.exists, inside)

    def _places(self, step: SSAValue) -> list[tuple[SSAValue, SSAValue | None]]:
        """For each line of this thread the index in the input, and whether it may be read."""
        k, pixels, depth = self.k, self.pixels, self.tile.width
        along = k.add(k.mul(step, depth), self.column)
        within = None if pixels.depth % depth == 0 else k.compare("slt", along, pixels.depth)
        cells = [self._cell(row, along) for row in self.rows]
        return [(index, k.both(within, inside)) for index, inside in cells]

    def _target(self, stage: SSAValue | int, line: int) -> SSAValue:
        return self.tile.at(self.k, stage, self.k.add(self.line, line), self.column)

    def start(self, step: SSAValue, stage: SSAValue | int) -> None:
        k, wide = self.k, self.pixels.wide
        for line, (index, inside) in zip(self.lines, self._places(step), strict=True):
            valid = None if inside is None else k.select(inside, wide, 0)
            target = self._target(stage, line)
            k.insert(CopyAsyncOp(self.buffer, index, self.tile.buffer, target, wide, valid))

    def fetch(self, step: SSAValue, wanted: SSAValue | None) -> list[SSAValue]:
        k, wide = self.k, self.pixels.wide
        fragments: list[SSAValue] = []
        for index, inside in self._places(step):
            both = k.both(inside, wanted)
            valid = None if both is None else k.select(both, wide, 0)
            read = LoadFragmentOp(self.buffer, index, range(wide), valid=valid, wide=True)
            fragment = k.value(read)
            fragments.append(fragment if both is None or not self.pixels.filling else self._filled(fragment, both))
        return fragments

    def _filled(self, fragment: SSAValue, inside: SSAValue) -> SSAValue:
        """What was read, which is zero outside of the input; there the filling is added."""
        k = self.k
        element = element_type(fragment)
        more = k.select(inside, k.constant(0, element), k.constant(self.pixels.filling, element))
        filled = MapFragmentOp([fragment, more], element, self.pixels.wide)
        with k.inside(filled.body.block):
            value, other = filled.body.block.args
            k.insert(YieldOp(operands=[[k.value(arith.OrIOp(value, other))]]))
        return k.value(filled)

    def put(self, fragments: Sequence[SSAValue], stage: SSAValue | int) -> None:
        offsets = range(self.pixels.wide)
        for line, fragment in zip(self.lines, fragments, strict=True):
            target = self._target(stage, line)
            self.k.insert(StoreFragmentOp(fragment, self.tile.buffer, target, offsets, wide=True))
