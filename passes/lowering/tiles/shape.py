"""How large tiles are, and in how many parts the sum of each is split."""

from __future__ import annotations

from dataclasses import dataclass

_PROCESSORS = 132  # of an H100: how many blocks it takes to keep it busy
_FEWEST_STEPS = 4  # of one part of a split sum
_MOST_PARTS = 16


@dataclass(frozen=True)
class TileShape:
    """`rows` x `columns` results per block, `depth` products at a time.

    A warp computes a part of the tile, the warps of a block stand in `warp_rows` x `warp_columns`. `stages` tiles of
    the operands are in shared memory at once.
    """

    rows: int
    columns: int
    depth: int
    warp_rows: int
    warp_columns: int
    stages: int = 3

    @property
    def threads(self) -> int:
        return 32 * self.warp_rows * self.warp_columns


# Single precision, multiplied by each thread for itself.
MULTIPLY_ADD = (
    TileShape(128, 128, 16, 4, 2),
    TileShape(64, 64, 16, 4, 2),
    TileShape(32, 32, 32, 2, 1),
)
# Half precision, multiplied by the matrix units.
MATRIX_UNIT = (
    TileShape(128, 128, 32, 2, 4),
    TileShape(64, 64, 32, 2, 2),
    TileShape(32, 32, 32, 2, 2),
)


def choose_shape(shapes: tuple[TileShape, ...], rows: int, columns: int, batch: int) -> TileShape:
    """The largest shape with which there is work for all processors."""
    for shape in shapes:
        blocks = -(-rows // shape.rows) * -(-columns // shape.columns) * batch
        if blocks >= _PROCESSORS and 2 * rows > shape.rows and 2 * columns > shape.columns:
            return shape
    # Not enough for all: larger tiles read less, and the sum can be split.
    return shapes[2] if rows <= 32 or columns <= 32 else shapes[1]


def choose_parts(shape: TileShape, rows: int, columns: int, batch: int, steps: int) -> int:
    """In how many parts to split each sum of so many tiles, so that there is work for all processors."""
    blocks = -(-rows // shape.rows) * -(-columns // shape.columns) * batch
    return max(1, min(2 * _PROCESSORS // max(blocks, 1), steps // _FEWEST_STEPS, _MOST_PARTS))
