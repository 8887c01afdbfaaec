"""How large tiles are, and in how many parts the sum of each is split: chosen by an estimate of the time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

# An H100: how many blocks run side by side, and bytes that pass its L2 cache per cycle.
_PROCESSORS = 132
_BYTES_PER_CYCLE = 2500
# Cycles of a block before and after its loop, and of a second launch.
_BLOCK_OVERHEAD = 2000
_LAUNCH_OVERHEAD = 4000
_PARTS = (1, 2, 3, 4, 6, 8, 12, 16)
_MULTIPLY_ADDS = 128  # of a processor per cycle
_FEWEST_STEPS = 2  # of one part of a split sum


@dataclass(frozen=True)
class TileShape:
    """`rows` x `columns` results per block, `depth` products at a time.

    A warp computes a part of the tile, the warps of a block stand in `warp_rows` x `warp_columns`. `stages` tiles of
    the operands are in shared memory at once. `floor` is how many cycles a step takes a block that has a processor for
    itself, `resident` how many blocks fit on a processor, `rate` how many products one makes per cycle.
    """

    rows: int
    columns: int
    depth: int
    warp_rows: int
    warp_columns: int
    floor: int
    resident: int
    rate: int
    stages: int = 3

    @property
    def bytes(self) -> int:
        """Of an element."""
        return 4 if self.rate == _MULTIPLY_ADDS else 2

    @property
    def threads(self) -> int:
        return 32 * self.warp_rows * self.warp_columns


# Single precision, multiplied by each thread for itself.
MULTIPLY_ADD = (
    TileShape(128, 128, 16, 4, 2, floor=2200, resident=2, rate=_MULTIPLY_ADDS),
    TileShape(64, 64, 16, 4, 2, floor=650, resident=3, rate=_MULTIPLY_ADDS),
    TileShape(32, 32, 32, 2, 1, floor=1300, resident=8, rate=_MULTIPLY_ADDS),
)
# Half precision, multiplied by the matrix units.
MATRIX_UNIT = (
    TileShape(128, 128, 32, 2, 4, floor=1000, resident=2, rate=1024),
    TileShape(64, 64, 32, 2, 2, floor=700, resident=4, rate=1024),
    TileShape(32, 32, 32, 2, 2, floor=600, resident=8, rate=1024),
)


@dataclass(frozen=True)
class Work:
    """A batch of products: rows x columns results each, with `steps(shape)` tiles along the depth."""

    rows: int
    columns: int
    batch: int
    steps: Callable[[TileShape], int]

    def blocks(self, shape: TileShape) -> int:
        return -(-self.rows // shape.rows) * -(-self.columns // shape.columns) * self.batch

    def cycles(self, shape: TileShape, parts: int) -> float:
        """About how long it takes with tiles of a shape and each sum split in so many parts."""
        blocks = self.blocks(shape) * parts
        side_by_side = min(shape.resident, -(-blocks // _PROCESSORS))
        rounds = -(-blocks // (_PROCESSORS * side_by_side))
        products = shape.rows * shape.columns * shape.depth * side_by_side
        read = (shape.rows + shape.columns) * shape.depth * shape.bytes * side_by_side
        step = max(shape.floor, products / shape.rate, read * _PROCESSORS / _BYTES_PER_CYCLE)
        total = rounds * (-(-self.steps(shape) // parts) * step + _BLOCK_OVERHEAD)
        if parts > 1:
            moved = 8 * parts * self.rows * self.columns * self.batch  # written and read
            total += _LAUNCH_OVERHEAD + moved / _BYTES_PER_CYCLE
        return total


def choose(shapes: Sequence[TileShape], work: Work, *, may_split: bool) -> tuple[TileShape, int]:
    """The shape and the number of parts with the least estimated time."""
    choices: list[tuple[float, int, TileShape, int]] = []
    for order, shape in enumerate(shapes):
        for parts in _PARTS if may_split else (1,):
            steps = work.steps(shape)
            if parts == 1 or steps >= _FEWEST_STEPS * parts:
                none_empty = -(-steps // max(1, -(-steps // parts)))
                choices.append((work.cycles(shape, none_empty), order, shape, max(1, none_empty)))
    _, _, shape, parts = min(choices, key=lambda choice: choice[:2])
    return shape, parts
