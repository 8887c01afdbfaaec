"""Tiles of queries, keys and values in shared memory, and how a block brings them there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import f32
from xdsl.ir import Attribute

from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_types import byte_width
from mlirt.kernels.attention.cuda.flash_shape import FlashShape, padded
from mlirt.kernels.attention.walks import Walk
from mlirt.kernels.lib.cuda.tiles.alignment import widest_access
from mlirt.kernels.lib.cuda.tiles.loaders import Matrix, MatrixLoader
from mlirt.kernels.lib.cuda.tiles.tile_memory import TileMemory, accumulator_pitch
from mlirt.kernels.lib.language import Value, builder, kernel
from mlirt.kernels.lib.language.simt_words import shared_memory
from mlirt.kernels.lib.language.words import place, stride
from mlirt.kernels.lib.tactics.lowering import Lowering

STAGES = 2  # of keys and values: one is used while the next is on its way
_PADDING = 16  # bytes after each row, so that rows start in different banks


@dataclass(frozen=True)
class Rows:
    """An operand as `count` rows of `width` neighbouring elements, `step` apart."""

    walk: Walk
    step: Dim
    count: Dim
    width: int

    def wide(self, lowering: Lowering) -> int:
        """How many elements are copied at once."""
        return widest_access(self.walk.value, [self.step, *self.walk.batch, self.walk.offset], lowering)


@dataclass(frozen=True)
class FlashTiles:
    """The shared memory of a block: its queries, and two stages of keys and values."""

    queries: TileMemory
    keys: TileMemory
    values: TileMemory

    @staticmethod
    def bytes_of(element: Attribute, shape: FlashShape, depth: int, columns: int) -> int:
        """How many bytes of shared memory that takes."""
        return byte_width(element) * sum(FlashTiles._counts(element, shape, depth, columns))

    @staticmethod
    def _counts(element: Attribute, shape: FlashShape, depth: int, columns: int) -> tuple[int, int]:
        """Elements of the queries, and of the stages or the results."""
        pad = _PADDING // byte_width(element)
        deep, wide = padded(depth), padded(columns)
        results = shape.queries * accumulator_pitch(wide) * byte_width(f32) // byte_width(element)
        return shape.queries * (deep + pad), max(results, STAGES * shape.keys * (deep + wide + 2 * pad))

    @staticmethod
    def allocate(element: Attribute, shape: FlashShape, depth: int, columns: int) -> FlashTiles:
        """Keys and values have at least room for the results, which take their place in the end."""
        pad = _PADDING // byte_width(element)
        deep, wide = padded(depth), padded(columns)
        counts = FlashTiles._counts(element, shape, depth, columns)
        queries, others = (shared_memory(name, count, element) for name, count in zip(("queries", "stages"), counts))
        return FlashTiles(
            TileMemory(queries, 0, shape.queries, deep, deep + pad),
            TileMemory(others, 0, shape.keys, deep, deep + pad),
            TileMemory(others, STAGES * shape.keys * (deep + pad), shape.keys, wide, wide + pad),
        )


def loader(
    rows: Rows,
    tile: TileMemory,
    batch: Sequence[Value],
    thread: Value,
    shape: FlashShape,
    lowering: Lowering,
) -> MatrixLoader:
    """Brings tile after tile of an operand's rows for one batch entry."""
    base = batch_offset(batch, rows.walk)
    buffer = rows.walk.buffer(builder())
    matrix = Matrix(buffer, base, stride(rows.step), rows.count, rows.width, True, rows.wide(lowering))
    return MatrixLoader(matrix, tile, thread, shape.threads, place(0))


@kernel
def batch_offset(batch: Sequence[Value], walk: Walk) -> Value:
    """Where the elements of a batch entry start."""
    return place(sum([index * stride(step) for index, step in zip(batch, walk.batch, strict=True) if step != 0]))
