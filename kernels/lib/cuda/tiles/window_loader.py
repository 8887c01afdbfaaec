"""The im2col view of a convolution's input by columns: one per pixel of the result, one line per tap and channel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import Attribute, SSAValue

from mlirt.dialects.fused.contraction import ConvolutionOp
from mlirt.dialects.kernel.async_copy import CopyAsyncOp
from mlirt.dialects.kernel.buffers import memory
from mlirt.dialects.kernel.fragment import LoadFragmentOp, StoreFragmentOp
from mlirt.dialects.symbolic import Dim, product
from mlirt.dialects.tensor_types import byte_width, dims, element_of
from mlirt.kernels.lib.builder.kernel_builder import KernelBuilder
from mlirt.kernels.lib.cuda.tiles.loaders import Loader, rounded
from mlirt.kernels.lib.cuda.tiles.tile_memory import TileMemory
from mlirt.kernels.lib.language import Value, build, value_of
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

    def tiles_per_tap(self, depth: int) -> int:
        return -(-self.channels // depth)

    def steps(self, depth: int) -> int:
        """Tiles along the lines."""
        if self.is_flat:
            return -(-self.channels * self.taps // depth)
        return self.taps * self.tiles_per_tap(depth)


class WindowLoader(Loader):
    """Each thread brings every `step`-th line of one pixel, or of `wide` neighbouring ones.

    Pixels that are wider than the elements of the tile are rounded on their way, one by one.
    """

    def __init__(
        self,
        k: KernelBuilder,
        window: Window,
        tile: TileMemory,
        thread: SSAValue,
        threads: int,
        first: SSAValue,
        group: SSAValue,
    ) -> None:
        self.k, self.window, self.tile = k, window, tile
        self.target = memory(tile.buffer).get_element_type()
        self.is_async = window.wide * byte_width(window.element) >= 4 and not window.is_rounded
        across = tile.width // window.wide
        self.step = threads // across
        self.count = tile.lines // self.step
        self.line, self.column = k.div(thread, across), k.mul(k.rem(thread, across), window.wide)
        self.buffer = k.buffer(window.op.input)
        self.strides = k.strides(window.op.input)
        self.source = ConvolutionOperands(k, window.op)
        self.first_channel = k.mul(group, window.channels)
        self._find_pixel(k.add(first, self.column))

    def _find_pixel(self, column: SSAValue) -> None:
        """The image of a column, where its window starts, and whether there is such a column (None: always)."""
        k, window = self.k, self.window
        batch = dims(window.op.output.type)[0]
        columns = batch * window.pixels
        whole = isinstance(columns, int) and columns % self.tile.width == 0
        self.exists = None if whole else k.compare("slt", column, k.size(columns))
        pixels = k.size(window.pixels)
        image = k.constant(0) if batch == 1 else k.div(column, pixels)
        pixel = value_of(column) if batch == 1 else k.rem(column, pixels)
        self.image_offset = k.mul(image, self.strides[0])
        if window.wide > 1:
            self.image_offset = k.add(self.image_offset, pixel)
            self.starts = list[Value]()
            return
        positions = list[Value]()
        sizes = dims(window.op.output.type)[2:]
        for size in reversed(sizes[1:]):
            extent = k.size(size)
            positions.append(k.rem(pixel, extent))
            pixel = k.div(pixel, extent)
        self.starts = build(k, self.source.starts, [image, image, pixel, *reversed(positions)])

    def _tap(self, tap: SSAValue) -> tuple[SSAValue, SSAValue | None]:
        """Where the cell of a tap lies relative to the channel, and whether it is inside (None: always)."""
        k = self.k
        if self.window.wide > 1:
            return self.image_offset, self.exists
        taps = list[Value]()
        sizes = dims(self.window.op.kernel.type)[2:]
        for size in reversed(sizes[1:]):
            taps.append(k.rem(tap, k.size(size)))
            tap = k.div(tap, k.size(size))
        cells, inside = build(k, self.source.cells, self.starts, [value_of(tap), *reversed(taps)])
        offset = self.image_offset
        for cell, stride in zip(cells, self.strides[2:], strict=True):
            offset = k.add(offset, k.mul(cell, stride))
        return offset, k.both(self.exists, inside)

    def _lines(self, step: SSAValue) -> list[tuple[SSAValue, SSAValue | None]]:
        """(index in the input, whether it exists) of each line of this thread."""
        return self._flat_lines(step) if self.window.is_flat else self._tap_lines(step)

    def _flat_lines(self, step: SSAValue) -> list[tuple[SSAValue, SSAValue | None]]:
        k, window, depth = self.k, self.window, self.tile.lines
        total = window.channels * window.taps
        found: list[tuple[SSAValue, SSAValue | None]] = []
        for number in range(self.count):
            line = k.add(k.add(k.mul(step, depth), self.line), number * self.step)
            offset, valid = self._tap(k.div(line, window.channels))
            channel = k.add(self.first_channel, k.rem(line, window.channels))
            if total % depth:
                valid = k.both(valid, k.compare("slt", line, total))
            found.append((k.add(offset, k.mul(channel, self.strides[1])), valid))
        return found

    def _channel(self, step: SSAValue) -> tuple[SSAValue, SSAValue]:
        """The tap of a step, and the first channel (of the group) of this thread."""
        k, per_tap = self.k, self.window.tiles_per_tap(self.tile.lines)
        one = self.window.taps == 1
        tap = k.constant(0) if one else k.div(step, per_tap)
        block = step if one else k.rem(step, per_tap)
        return tap, k.add(k.mul(block, self.tile.lines), self.line)

    def _tap_lines(self, step: SSAValue) -> list[tuple[SSAValue, SSAValue | None]]:
        k, window = self.k, self.window
        tap, channel = self._channel(step)
        offset, inside = self._tap(tap)
        found: list[tuple[SSAValue, SSAValue | None]] = []
        for number in range(self.count):
            here = k.add(channel, number * self.step)
            valid = inside
            if window.channels % self.tile.lines:
                valid = k.both(valid, k.compare("slt", here, window.channels))
            found.append((k.add(offset, k.mul(k.add(self.first_channel, here), self.strides[1])), valid))
        return found

    def start(self, step: SSAValue, stage: SSAValue | int) -> None:
        k, wide = self.k, self.window.wide
        for number, (index, valid) in enumerate(self._lines(step)):
            line = k.add(self.line, number * self.step)
            target = self.tile.at(k, stage, line, self.column)
            count = None if valid is None else k.select(valid, wide, 0)
            k.insert(CopyAsyncOp(self.buffer, index, self.tile.buffer, target, wide, count))

    def fetch(self, step: SSAValue, wanted: SSAValue | None) -> list[SSAValue]:
        k = self.k
        if not self.window.is_flat:
            return [self._fetch_tap(step, wanted)]
        fragments: list[SSAValue] = []
        for index, valid in self._flat_lines(step):
            both = k.both(valid, wanted)
            count = None if both is None else k.select(both, 1, 0)
            fragments.append(self._rounded(LoadFragmentOp(self.buffer, index, [0], valid=count)))
        return fragments

    def _fetch_tap(self, step: SSAValue, wanted: SSAValue | None) -> SSAValue:
        """All lines of this thread at once: they are channels of one cell."""
        k, window, stride = self.k, self.window, self.strides[1]
        tap, channel = self._channel(step)
        offset, inside = self._tap(tap)
        index = k.add(offset, k.mul(k.add(self.first_channel, channel), stride))
        valid: SSAValue | int | None = None
        if window.channels % self.tile.lines:
            valid = k.div(k.max(k.add(k.sub(k.constant(window.channels), channel), self.step - 1), 0), self.step)
        condition = k.both(inside, wanted)
        if condition is not None:
            valid = k.select(condition, self.count if valid is None else valid, 0)
        count = None if valid is None else k.index(valid)
        lines = [number * self.step for number in range(self.count)]
        if isinstance(stride, int):
            return self._rounded(LoadFragmentOp(self.buffer, index, [line * stride for line in lines], valid=count))
        return self._rounded(LoadFragmentOp(self.buffer, index, lines, stride=stride, valid=count))

    def _rounded(self, read: LoadFragmentOp) -> SSAValue:
        return rounded(self.k, self.k.value(read), self.target)

    def put(self, fragments: Sequence[SSAValue], stage: SSAValue | int) -> None:
        k, tile = self.k, self.tile
        start = tile.at(k, stage, self.line, self.column)
        pitch = self.step * tile.pitch
        if not self.window.is_flat:
            offsets = [number * pitch for number in range(self.count)]
            k.insert(StoreFragmentOp(fragments[0], tile.buffer, start, offsets))
            return
        for number, fragment in enumerate(fragments):
            k.insert(StoreFragmentOp(fragment, tile.buffer, start, [number * pitch]))


def column_count(op: ConvolutionOp) -> Dim:
    """Pixels of all images of the result."""
    sizes = dims(op.output.type)
    return sizes[0] * product(sizes[2:])
