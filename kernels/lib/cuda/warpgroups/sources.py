"""The producer's side of the pipeline: where the tiles of an operand come from, and how copies of a stage start."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import Float32Type
from xdsl.ir import Attribute, SSAValue

from mlirt.dialects.kernel.warpgroup import LINE
from mlirt.dialects.plan.tensor_map import Walk
from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_types import byte_width
from mlirt.kernels.lib.builder.kernel_builder import KernelBuilder
from mlirt.kernels.lib.cuda.tiles.alignment import is_multiple
from mlirt.kernels.lib.language import Index, Value, kernel
from mlirt.kernels.lib.language.hopper_words import Barrier, SharedTile, tma_load, tma_load_window
from mlirt.kernels.lib.language.words import extent, static_range

_MAX_DIMENSIONS = 5
_PIECE = 16  # bytes that addresses and steps are multiples of


@dataclass(frozen=True)
class Slot:
    """The place of a tile in shared memory, and the barrier that counts its bytes."""

    tile: SharedTile
    barrier: Barrier


class Source(ABC):
    """One operand, `own` rows (or columns) x a line along the depth at a time."""

    own: int
    by_depth: bool
    is_constant: bool
    """Whether it is there before the launch before this one has ended."""
    in_fragment_order: bool = False
    """Whether its columns lie so that a thread's sums are those of neighbouring columns."""

    @abstractmethod
    def start_tile(self, first: Value, batch: Sequence[Value]) -> None:
        """The next loads are for the rows from `first` on of a batch entry."""

    @abstractmethod
    def load(self, step: Index, slot: Slot) -> None:
        """Start to copy the tile of a step along the depth."""


@dataclass(frozen=True)
class MappedMemory:
    """A tensor in a buffer of the host program: elements from a byte on, sizes and steps outermost first."""

    buffer: SSAValue
    element: Attribute
    offset: Dim
    sizes: tuple[Dim, ...]
    steps: tuple[Dim, ...]

    def fits(self) -> bool:
        """Whether the device can copy from it: addresses and steps are multiples of 16 bytes."""
        width = byte_width(self.element)
        places = [self.offset, *(step * width for step in self.steps[:-1])]
        aligned = all(is_multiple(place, _PIECE) for place in places)
        aligned = aligned and not any(isinstance(place, int) and place < 0 for place in places)
        moves = all(step != 0 for step in self.steps[:-1])
        return aligned and moves and self.steps[-1] == 1 and len(self.sizes) <= _MAX_DIMENSIONS

    def operand_map(self, k: KernelBuilder, box: Sequence[int], line: int, walk: Walk | None = None) -> SSAValue:
        """A map for copies of a `box` in lines of so many bytes, which matrix units read.

        They multiply float32 as TF32 and cut off the lower 13 bits of the mantissa, so that every product would be too
        small. The copies round to the nearest instead, at no cost.
        """
        place = (self.buffer, self.element, self.offset, self.sizes, self.steps)
        return k.tensor_map(*place, box, line, walk, tf32=self.element == Float32Type())


class MatrixSource(Source):
    """A batch of matrices. `by_depth`: neighbours along its own dimension are neighbours in memory.

    `batch` tells which entries of a batch index the leading dimensions of the memory are.
    """

    def __init__(
        self,
        k: KernelBuilder,
        memory: MappedMemory,
        own: int,
        batch: tuple[int, ...],
        *,
        by_depth: bool,
        known: bool,
        in_fragment_order: bool = False,
        line: int = LINE,
    ) -> None:
        self.in_fragment_order = in_fragment_order
        self.own, self.by_depth, self.is_constant, self.batch = own, by_depth, known, batch
        self.depth = line // byte_width(memory.element)
        box = [1] * len(batch) + ([self.depth, self.depth] if by_depth else [own, self.depth])
        self.piece = self.depth * self.depth
        self.map = memory.operand_map(k, box, line)
        self.map.name_hint = "weights" if known else "matrix"

    def start_tile(self, first: Value, batch: Sequence[Value]) -> None:
        self.first, self.entry = first, [batch[axis] for axis in self.batch]

    @kernel
    def load(self, step: Index, slot: Slot) -> None:
        along = step * self.depth
        if not self.by_depth:
            tma_load(self.map, [*self.entry, self.first, along], slot.tile, slot.barrier)
        else:
            for piece in static_range(self.own // self.depth):
                origin = [*self.entry, along, self.first + piece * self.depth]
                target = SharedTile(slot.tile.memory, slot.tile.index + piece * self.piece)
                tma_load(self.map, origin, target, slot.barrier)


@dataclass(frozen=True)
class WindowShape:
    """How a convolution walks: spatial dimensions outermost first."""

    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    pre: tuple[int, ...]
    post: tuple[int, ...]
    output: tuple[Dim, ...]
    channels: int
    by_group: bool = False
    """Whether the last entry of the batch is a group of so many channels, not an image."""

    def walk(self) -> Walk:
        """Where the window's first tap goes."""
        upper = tuple(
            post - (taps - 1) * dilation
            for post, taps, dilation in zip(self.post, self.kernel, self.dilation, strict=True)
        )
        return Walk(tuple(-pre for pre in self.pre), upper, self.stride)


class WindowSource(Source):
    """The pixels of images as rows, tap by tap and in each the channels.

    Those of all images follow each other, or each image is an entry of the batch. A tile may hold channels of the next
    group, which weights of zero belong to.
    """

    by_depth = False
    is_constant = False

    def __init__(self, k: KernelBuilder, memory: MappedMemory, own: int, shape: WindowShape, line: int = LINE) -> None:
        self.own, self.shape = own, shape
        self.depth = line // byte_width(memory.element)
        self.blocks = -(-shape.channels // self.depth)
        self.map = memory.operand_map(k, [own, self.depth], line, shape.walk())
        self.map.name_hint = "images"

    def start_tile(self, first: Value, batch: Sequence[Value]) -> None:
        self.pixel, self.channel = self._corner(first, batch)

    @kernel
    def _corner(self, pixel: Value, batch: Sequence[Value]) -> tuple[list[Value], Value | None]:
        """The image and the place of the first tap of a tile's first pixel, and the first channel of a group."""
        shape = self.shape
        at: list[Value] = []
        for size, stride, pre in reversed(list(zip(shape.output, shape.stride, shape.pre, strict=True))):
            at = [pixel % extent(size) * stride - pre, *at]
            pixel = pixel // extent(size)
        if shape.by_group:
            return [pixel, *at], batch[-1] * shape.channels
        return [pixel + batch[0] if batch else pixel, *at], None

    @kernel
    def load(self, step: Index, slot: Slot) -> None:
        tap, block = step // self.blocks, step % self.blocks
        offsets: list[Index] = []
        for taps, dilation in reversed(list(zip(self.shape.kernel, self.shape.dilation, strict=True))):
            offsets = [tap % taps * dilation, *offsets]
            tap = tap // taps
        channel = block * self.depth
        if self.channel is not None:
            channel = self.channel + channel
        tma_load_window(self.map, [*self.pixel, channel], offsets, slot.tile, slot.barrier)
