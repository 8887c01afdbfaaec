"""Which register tile suits a matrix product: a model of cycles per step of the sum, no IR."""

from __future__ import annotations

from dataclasses import dataclass

from mlirt.dialects.symbolic import Dim


@dataclass(frozen=True)
class TileShape:
    """`rows` x `vectors` accumulators in registers."""

    rows: int
    vectors: int

    def width(self, lanes: int) -> int:
        """Columns of the product that the tile spans."""
        return self.vectors * lanes


# Shapes by vector width that leave registers for the factors.
_SHAPES: dict[int, tuple[tuple[int, int], ...]] = {
    512: (
        *((1, 8), (1, 4), (1, 2), (1, 1), (2, 8), (2, 4), (2, 2), (2, 1), (3, 8), (3, 4), (3, 2), (3, 1)),
        *((4, 6), (4, 4), (4, 2), (4, 1), (6, 4), (8, 3), (12, 2), (14, 2), (7, 1), (14, 1)),
    ),
    256: (
        *((1, 8), (1, 4), (1, 2), (1, 1), (2, 6), (2, 3), (2, 1), (3, 4), (3, 2), (3, 1)),
        *((4, 3), (4, 2), (4, 1), (5, 2), (6, 2), (12, 1)),
    ),
    128: (
        *((1, 8), (1, 4), (1, 2), (1, 1), (2, 4), (2, 2), (2, 1), (3, 3), (3, 2), (3, 1)),
        *((4, 2), (4, 1), (5, 2), (8, 1)),
    ),
}
_FEW_ROWS = 4
# Bytes of a panel that a core reads per cycle from its second-level cache, when that works at its best.
_PANEL_BYTES = 32
_LATENCY = 4
# Measured: how much of that the multiplications do not hide.
_LOADS_SHOW, _STREAM_SHOWS = 0.3, 0.1
# Rows that lie a multiple of this many bytes apart compete for the eight ways of one set of the first-level cache.
_SET_BYTES = 4096
_WAYS = 8
_CROWDED = 1.4
_UNKNOWN_ROWS, _UNKNOWN_COLUMNS = 192, 768


def choose_tile(
    rows: Dim, columns: Dim, depth: Dim, vector_bits: int, threads: int, pairs: int = 1, row_bytes: Dim = 0
) -> TileShape:
    """The tile with the least work for the busiest of `threads` workers.

    `pairs` is how many products of this size there are, `row_bytes` the distance between rows of the left factor.
    """
    lanes = vector_bits // 32
    count = rows if isinstance(rows, int) else _UNKNOWN_ROWS
    width = columns if isinstance(columns, int) else _UNKNOWN_COLUMNS
    shapes = [TileShape(*shape) for shape in _SHAPES[vector_bits] if _fits(shape, rows)]

    def cost(shape: TileShape) -> float:
        crowded = isinstance(row_bytes, int) and row_bytes > 0 and row_bytes % _SET_BYTES == 0
        slow = _CROWDED if crowded and shape.rows >= _WAYS else 1.0
        panels = -(-width // shape.width(lanes))
        full, rest = divmod(count, shape.rows)
        tiles = pairs * panels * (full + (rest > 0))
        work = pairs * panels * (full * cycles(shape.rows, shape, lanes) + (rest and cycles(rest, shape, lanes)))
        return slow * work * -(-tiles // threads) * threads / tiles

    return min(shapes, key=cost)


def _fits(shape: tuple[int, int], rows: Dim) -> bool:
    """Few rows get a shape made for them; tiles are never higher than the matrix."""
    if not isinstance(rows, int):
        return shape[0] > _FEW_ROWS
    return min(rows, _FEW_ROWS) <= shape[0] <= rows


def cycles(rows: int, shape: TileShape, lanes: int) -> float:
    """For one step of the sum: two multiplications a cycle and a chain of additions, into which loads and the stream of
    a panel from the second-level cache fit, but not quite.
    """
    multiplications = rows * shape.vectors / 2
    loads = (rows + shape.vectors) / 2
    stream = shape.width(lanes) * 4 / _PANEL_BYTES
    return max(multiplications, loads, stream, _LATENCY) + _LOADS_SHOW * loads + _STREAM_SHOWS * stream


def tail_rows(rows: Dim, shape: TileShape) -> tuple[int, ...]:
    """Heights of the tiles for what whole tiles leave: one where that is known, else powers of two."""
    if isinstance(rows, int):
        rest = rows % shape.rows
        return (rest,) if rest else ()
    return tuple(size for size in (8, 4, 2, 1) if size < shape.rows)
