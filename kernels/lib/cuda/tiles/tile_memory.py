"""A tile of an operand in shared memory, several stages of it."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import f32
from xdsl.ir import Attribute, SSAValue

from mlirt.dialects.tensor_types import byte_width
from mlirt.kernels.lib.cuda.tiles.shape import TILE_PADDING
from mlirt.kernels.lib.language import Index, Value, kernel
from mlirt.kernels.lib.language.simt_words import reuse_shared, shared_memory
from mlirt.kernels.lib.language.words import place


@dataclass(frozen=True)
class TileMemory:
    """`lines` rows of `width` elements that lie `pitch` elements apart; stage s starts at `base + s * size`."""

    buffer: SSAValue
    base: int
    lines: int
    width: int
    pitch: int

    @property
    def size(self) -> int:
        return self.lines * self.pitch

    @kernel
    def at(self, stage: Index, line: Index, column: Index) -> Value:
        """The index of an element of a stage."""
        return place(stage * self.size + self.base + line * self.pitch + column)


@dataclass(frozen=True)
class TileMemories:
    """The shared memory of a block: tiles of both operands, and after the last of them the accumulators."""

    left: TileMemory
    right: TileMemory

    @staticmethod
    def allocate(
        element: Attribute, stages: int, left: tuple[int, int], right: tuple[int, int], accumulators: int
    ) -> TileMemories:
        """Room for tiles of (lines, width) elements, and in the same place for `accumulators` bytes of accumulators."""
        size = byte_width(element)
        pitches = [width + TILE_PADDING // size for _, width in (left, right)]
        start = stages * left[0] * pitches[0]
        count = start + stages * right[0] * pitches[1]
        buffer = shared_memory("tiles", max(count, -(-accumulators // size)), element)
        return TileMemories(TileMemory(buffer, 0, *left, pitches[0]), TileMemory(buffer, start, *right, pitches[1]))

    def accumulators(self, rows: int, columns: int, element: Attribute) -> TileMemory:
        """Accumulators of 4 bytes in the shared memory of the tiles, to be used after the last read of a tile."""
        pitch = accumulator_pitch(columns)
        buffer = reuse_shared("accumulators", self.left.buffer, rows * pitch, element)
        return TileMemory(buffer, 0, rows, columns, pitch)


def accumulator_pitch(columns: int) -> int:
    """The distance between rows of accumulators."""
    return columns + TILE_PADDING // byte_width(f32)
