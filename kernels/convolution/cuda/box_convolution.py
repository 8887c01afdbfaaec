"""A convolution on TMA boxes of pixels: what is copied, which tiles there are, and its kernel."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

from xdsl.ir import SSAValue

from mlirt.dialects.fused.contraction import ConvolutionOp
from mlirt.dialects.kernel.matrix_unit import MmaKind
from mlirt.dialects.kernel.warpgroup import GROUP_LINES, ROWS
from mlirt.dialects.layout import arranged
from mlirt.dialects.symbolic import Dim, ceil_div
from mlirt.dialects.tensor_types import byte_width
from mlirt.dialects.typical_sizes import typical, typical_values
from mlirt.kernels.convolution.cuda.group_convolution import filters
from mlirt.kernels.lib.builder.kernel_builder import KernelBuilder
from mlirt.kernels.lib.builder.placement import Pack
from mlirt.kernels.lib.cuda.warpgroups.box_product import BoxProduct
from mlirt.kernels.lib.cuda.warpgroups.box_rows import BoxRows
from mlirt.kernels.lib.cuda.warpgroups.box_tile import BoxTile, BoxWork
from mlirt.kernels.lib.cuda.warpgroups.kinds import Kind
from mlirt.kernels.lib.cuda.warpgroups.pixel_boxes import PixelBoxes
from mlirt.kernels.lib.cuda.warpgroups.planes import planes_cost
from mlirt.kernels.lib.cuda.warpgroups.row_epilogue import (
    ResultShape,
    RowEpilogue,
    bytes_ahead,
    large_extras,
    result_width,
    scalar_operations,
    width_of_results,
)
from mlirt.kernels.lib.cuda.warpgroups.sources import MappedMemory
from mlirt.kernels.lib.tactics.lowering import Lowering
from mlirt.kernels.lib.tile import worth_measuring

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array

MEASURED = frozenset({MmaKind.F16, MmaKind.BF16, MmaKind.S8, MmaKind.U8})
"""The products that the estimates are for."""
_MAX_STRIDE = 3
_COLUMNS, _GROUPS = (32, 64, 96, 128), (4, 3, 2, 1)
_MAX_STAGES = 3
_MAX_COST_RATIO, _MAX_MEASURED = 1.6, 6  # from the cheapest, and tiles that are worth a measurement


@dataclass(frozen=True)
class BoxConvolution:
    """Windows of `taps` positions over `images`, whose four dimensions end with the channels.

    `spatial` has stride, dilation and padding along both dimensions of an image. `pixels` are the images of the result
    and their sides. `counts` are those of output channels and channels; `order` brings the elements of the kernel to
    `[output channel, channel, *taps]`.
    """

    op: ConvolutionOp
    kind: Kind
    images: MappedMemory
    spatial: tuple[tuple[int, int, int, int], ...]
    taps: tuple[int, ...]
    pixels: tuple[Dim, Dim, Dim]
    counts: tuple[int, int]
    order: Pack
    lowering: Lowering

    @property
    def _is_row(self) -> bool:
        """Whether all pixels are a single row, of which tiles are parts."""
        return self.taps == (1, 1) and self.pixels[:2] == (1, 1)

    @cached_property
    def _widths(self) -> list[int]:
        """Of tiles."""
        if self._is_row:
            return [ROWS]
        width = self.pixels[-1]
        return list(dict.fromkeys([GROUP_LINES, *([width] if isinstance(width, int) and width <= ROWS else [])]))

    def boxes(self, width: int) -> PixelBoxes | None:
        """Those of tiles of a width; None where the device cannot copy them."""
        for (stride, *_), size in zip(self.spatial, self.images.sizes[1:3], strict=True):
            if stride > _MAX_STRIDE or (stride > 1 and not (isinstance(size, int) and size >= stride)):
                return None
        found = PixelBoxes.of(self.spatial, self.taps, width, self.kind.line) if width in self._widths else None
        return found if found is not None and found.fit else None

    def work(self, width: int) -> BoxWork | None:
        """What there is to do with tiles of a width."""
        boxes, op = self.boxes(width), self.op
        if boxes is None:
            return None
        images, down, across = self.pixels
        tiles = images * ceil_div(down, boxes.height) * ceil_div(across, boxes.width)
        return BoxWork(
            typical(tiles, typical_values(self.lowering.block)),
            self.counts[0],
            self._slabs,
            len(boxes.taps),
            boxes.copied,
            boxes.lines,
            self.kind.line,
            large_extras(op),
            result_width(op),
            scalar_operations(op),
            bytes_ahead(op) if self._is_row else 0,
            device=self.lowering.target.gpu,
        )

    @property
    def _slabs(self) -> int:
        return -(-self.counts[1] // self.kind.depth)

    def allows(self, tile: BoxTile) -> bool:
        """Whether a tile can do it."""
        work, boxes = self.work(tile.width), self.boxes(tile.width)
        return work is not None and boxes is not None and boxes.height == tile.height and work.allows(tile)

    def estimates(self) -> dict[str, float]:
        """Microseconds with each tile that is worth a measurement, the cheapest first."""
        planes = planes_cost(self.op, self.lowering)
        costs = sorted((work.microseconds(tile) + planes, tile.name) for tile, work in self._tiles())
        return worth_measuring(costs, _MAX_COST_RATIO, _MAX_MEASURED)

    def tile(self, choice: str) -> BoxTile | None:
        """That of a name, else the cheapest; None where it cannot do it."""
        tile = next((found for name in (choice, *self.estimates()) if (found := BoxTile.named(name)) is not None), None)
        return tile if tile is not None and self.allows(tile) else None

    def _tiles(self) -> Iterator[tuple[BoxTile, BoxWork]]:
        for width in self._widths:
            boxes, work = self.boxes(width), self.work(width)
            if boxes is None or work is None:
                continue
            for columns in (one for one in _COLUMNS if one - 32 < work.columns):
                yield from self._of_groups(BoxTile(boxes.height * width, columns, boxes.height, 1, _MAX_STAGES), work)

    def _of_groups(self, plain: BoxTile, work: BoxWork) -> Iterator[tuple[BoxTile, BoxWork]]:
        """A tile with all numbers of warpgroups, and as many stages as fit; products of windows are long enough to
        ping-pong.
        """
        for groups in _GROUPS:
            ping_pong = not self._is_row and groups > 1
            for extra in (work.ahead, 0):
                tile = replace(plain, groups=groups, extra=extra, ping_pong=ping_pong)
                while tile.stages > 1 and not work.allows(tile):
                    tile = replace(tile, stages=tile.stages - 1)
                if work.allows(tile):
                    yield tile, work
                    break

    def build(self, tile: BoxTile, buffer: SSAValue) -> None:
        """Write the kernel and launch it; the images lie in a buffer."""
        boxes, op, kind = self.boxes(tile.width), self.op, self.kind
        assert boxes is not None
        k = self.lowering.kernel("convolution")
        width = width_of_results(op, tile.own_tile, self.counts[0])
        epilogue = RowEpilogue(k, op, ResultShape((), (0, 2, 3), (1,)), self.lowering, width)
        maps = [self._map(k, boxes, number, buffer) for number in range(len(boxes.boxes))]
        right = filters(k, op.kernel, partial(self._packed, boxes), kind, self.lowering, (tile.columns, width))
        rows = BoxRows(boxes, *self.pixels)
        BoxProduct(k, tile, rows, self.counts[0], self._slabs, kind, (maps, right), epilogue).build(op)

    def _map(self, k: KernelBuilder, boxes: PixelBoxes, number: int, buffer: SSAValue) -> SSAValue:
        """A box's: the pixels of every image whose numbers have its remainders."""
        box, images = boxes.boxes[number], self.images
        batch, *sizes, channels = images.sizes
        remainders, strides = (box.down.remainder, box.across.remainder), [stride for stride, *_ in self.spatial]
        offset, lengths, steps = images.offset, list[Dim](), list[Dim]()
        for size, step, stride, remainder in zip(sizes, images.steps[1:3], strides, remainders, strict=True):
            offset = offset + step * (remainder * byte_width(images.element))
            lengths.append(ceil_div(size - remainder, stride))
            steps.append(step * stride)
        sizes, steps = (batch, *lengths, channels), [images.steps[0], *steps, 1]
        pixels = MappedMemory(buffer, images.element, offset, sizes, tuple(steps))
        made = pixels.operand_map(k, [1, box.rows, boxes.pitch, self.kind.depth], self.kind.line)
        made.name_hint = "pixels"
        return made

    def _packed(self, boxes: PixelBoxes, kernel: Array) -> Array:
        """`[output channel, lines of channels x positions of the window x channels]`, positions in order of boxes."""
        down, across = zip(*boxes.taps, strict=True)
        taps = self.order(kernel)[:, :, down, across]
        return arranged(taps, "n (s d) t", "n (s t d)", s=self._slabs, d=self.kind.depth)
