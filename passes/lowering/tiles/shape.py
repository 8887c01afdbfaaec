"""How large tiles are, and in how many parts the sum of each is split: the choices, and an estimate of their times."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

# An H100: how many blocks run side by side, and bytes that pass its L2 cache per cycle.
_PROCESSORS = 132
_BYTES_PER_CYCLE = 2500
_CYCLES_PER_MICROSECOND = 1755
# Cycles of a block before and after its loop, of a launch, and of a second launch.
_BLOCK_OVERHEAD = 2000
_LAUNCH, _MATRIX_LAUNCH = 5000, 2500
_LAUNCH_OVERHEAD = 4000
# Parts of a sum pass the cache faster than what others read at the same time.
_PARTS_PER_CYCLE = 10000
_PARTS = (1, 2, 3, 4, 6, 8, 12, 16)
_SCATTERED_LOAD = 165  # cycles, of an element by each thread: measured on an H200
_MULTIPLY_ADDS, _HALVES, _BYTES = 128, 1024, 2048  # of a processor per cycle
_FEWEST_STEPS = 2  # of one part of a split sum


@dataclass(frozen=True)
class TileShape:
    """`rows` x `columns` results per block, `depth` products at a time.

    A warp computes a part of the tile, the warps of a block stand in `warp_rows` x `warp_columns`. `stages` tiles of
    the operands are in shared memory at once. `floor` is how many cycles a step takes a block that has a processor for
    itself, `resident` how many blocks fit on a processor, `rate` how many products one makes per cycle. Where it was
    measured, `busy` is for how many cycles a step keeps a processor busy, and `start` how long a block takes beside
    its steps.
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
    busy: int = 0
    start: int = _BLOCK_OVERHEAD

    @property
    def bytes(self) -> int:
        """Of an element."""
        return {_MULTIPLY_ADDS: 4, _HALVES: 2, _BYTES: 1}[self.rate]

    @property
    def threads(self) -> int:
        return 32 * self.warp_rows * self.warp_columns


# Single precision, multiplied by each thread for itself. Fitted to 172 times on an H200, with a mean error of 11 %; the
# choices that follow take 6 % longer than the fastest ones.
MULTIPLY_ADD = (
    TileShape(128, 128, 16, 4, 2, floor=4150, resident=2, rate=_MULTIPLY_ADDS, busy=2380, start=4450),
    TileShape(64, 64, 16, 4, 2, floor=1140, resident=3, rate=_MULTIPLY_ADDS, busy=980, start=4170),
    TileShape(32, 32, 32, 2, 1, floor=2180, resident=8, rate=_MULTIPLY_ADDS, busy=863, start=0),
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
        steps = -(-self.steps(shape) // parts)
        moved = 8 * parts * self.rows * self.columns * self.batch if parts > 1 else 0  # written and read
        if shape.busy:
            full, rest = divmod(-(-blocks // _PROCESSORS), shape.resident)
            together = [shape.resident] * full + [rest] * (rest > 0)
            total = sum(steps * self._measured_step(shape, count) + shape.start for count in together)
            return _LAUNCH + total + moved / _PARTS_PER_CYCLE
        side_by_side = min(shape.resident, -(-blocks // _PROCESSORS))
        rounds = -(-blocks // (_PROCESSORS * side_by_side))
        total = rounds * (steps * self._step(shape, side_by_side) + shape.start)
        return _MATRIX_LAUNCH + total + (_LAUNCH_OVERHEAD + moved / _BYTES_PER_CYCLE if parts > 1 else 0)

    def _measured_step(self, shape: TileShape, side_by_side: int) -> float:
        """Cycles of a step of blocks that share a processor: they wait, work, and both where they do as much of it."""
        mixed = (shape.floor**3 + (shape.busy * side_by_side) ** 3) ** (1 / 3)
        return max(mixed, self._loaded_one_by_one(shape, side_by_side))

    def _step(self, shape: TileShape, side_by_side: int) -> float:
        products = shape.rows * shape.columns * shape.depth * side_by_side
        read = (shape.rows + shape.columns) * shape.depth * shape.bytes * side_by_side
        step = max(shape.floor, products / shape.rate, read * _PROCESSORS / _BYTES_PER_CYCLE)
        return max(step, self._loaded_one_by_one(shape, side_by_side))

    def _loaded_one_by_one(self, shape: TileShape, side_by_side: int) -> float:
        """Cycles for loads of a step that fetch single elements."""
        loaded = -(-shape.columns * shape.depth // shape.threads) * side_by_side
        return loaded * _SCATTERED_LOAD if self.is_scattered else 0


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
