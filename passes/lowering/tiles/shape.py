"""How large tiles are, and in how many parts the sum of each is split: the choices, and an estimate of their times."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

# An H100: how many blocks run side by side, and bytes that pass its L2 cache per cycle.
_PROCESSORS = 132
_BYTES_PER_CYCLE = 2500
_CYCLES_PER_MICROSECOND = 1755
# Cycles of a block before and after its loop, and of a second launch.
_BLOCK_OVERHEAD = 2000
_LAUNCH_OVERHEAD = 4000
_PARTS = (1, 2, 3, 4, 6, 8, 12, 16)
_SCATTERED_LOAD = 165  # cycles, of an element by each thread: measured on an H200
_MULTIPLY_ADDS, _HALVES, _BYTES = 128, 1024, 2048  # of a processor per cycle
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
        return {_MULTIPLY_ADDS: 4, _HALVES: 2, _BYTES: 1}[self.rate]

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
    TileShape(128, 128, 32, 2, 4, floor=1000, resident=2, rate=_HALVES),
    TileShape(64, 64, 32, 2, 2, floor=700, resident=4, rate=_HALVES),
    TileShape(32, 32, 32, 2, 2, floor=600, resident=8, rate=_HALVES),
)
# Bytes, multiplied by the matrix units: twice as many in as many bytes.
MATRIX_UNIT_BYTES = (
    TileShape(128, 128, 64, 2, 4, floor=1000, resident=2, rate=_BYTES),
    TileShape(64, 64, 64, 2, 2, floor=700, resident=4, rate=_BYTES),
    TileShape(32, 32, 64, 2, 2, floor=600, resident=8, rate=_BYTES),
)


@dataclass(frozen=True)
class Work:
    """A batch of products: rows x columns results each, with `steps(shape)` tiles along the depth.

    `is_scattered`: the elements of the right operand are loaded one by one, from places that are far apart.
    """

    rows: int
    columns: int
    batch: int
    steps: Callable[[TileShape], int]
    is_scattered: bool = False

    def blocks(self, shape: TileShape) -> int:
        return -(-self.rows // shape.rows) * -(-self.columns // shape.columns) * self.batch

    def microseconds(self, choice: TileChoice) -> float:
        """About how long it takes."""
        return self.cycles(choice.shape, choice.parts) / _CYCLES_PER_MICROSECOND

    def cycles(self, shape: TileShape, parts: int) -> float:
        """The same in cycles, with tiles of a shape and each sum split in so many parts."""
        blocks = self.blocks(shape) * parts
        side_by_side = min(shape.resident, -(-blocks // _PROCESSORS))
        rounds = -(-blocks // (_PROCESSORS * side_by_side))
        products = shape.rows * shape.columns * shape.depth * side_by_side
        read = (shape.rows + shape.columns) * shape.depth * shape.bytes * side_by_side
        step = max(shape.floor, products / shape.rate, read * _PROCESSORS / _BYTES_PER_CYCLE)
        if self.is_scattered:
            loaded = -(-shape.columns * shape.depth // shape.threads) * side_by_side
            step = max(step, loaded * _SCATTERED_LOAD)
        total = rounds * (-(-self.steps(shape) // parts) * step + _BLOCK_OVERHEAD)
        if parts > 1:
            moved = 8 * parts * self.rows * self.columns * self.batch  # written and read
            total += _LAUNCH_OVERHEAD + moved / _BYTES_PER_CYCLE
        return total


@dataclass(frozen=True)
class TileChoice:
    """A tile shape, and in how many parts each sum is split."""

    shape: TileShape
    parts: int

    @property
    def name(self) -> str:
        """Such as `128x128`, or `64x64p4` for four parts."""
        whole = f"{self.shape.rows}x{self.shape.columns}"
        return whole if self.parts == 1 else f"{whole}p{self.parts}"


def choices(shapes: Sequence[TileShape], steps: Callable[[TileShape], int], *, may_split: bool) -> list[TileChoice]:
    """All shapes with all numbers of parts of which none is empty and each has a few steps."""
    found: dict[TileChoice, None] = {}
    for shape in shapes:
        count = steps(shape)
        for parts in _PARTS if may_split else (1,):
            if parts == 1 or count >= _FEWEST_STEPS * parts:
                none_empty = -(-count // max(1, -(-count // parts)))
                found[TileChoice(shape, max(1, none_empty))] = None
    return list(found)


def choice_named(shapes: Sequence[TileShape], name: str) -> TileChoice | None:
    """The choice of a name, whether it is a sensible one or not."""
    match = re.fullmatch(r"(\d+x\d+)(?:p([1-9]\d*))?", name)
    if match is None:
        return None
    parts = int(match[2] or 1)
    return next((TileChoice(shape, parts) for shape in shapes if TileChoice(shape, 1).name == match[1]), None)
