"""How much of attention a block does: its warps, their rows of queries, and how many keys at a time. No IR."""

from __future__ import annotations

from dataclasses import dataclass

_PROCESSORS = 132
_GIGAHERTZ = 1.7
# Cycles of one warp: before the first and after the last tile of keys; for each tile whatever its size; for each 16 x 8
# tile of scores; for each 16 x 8 x 16 product of the matrix unit. A processor's four schedulers share the work.
_START, _TILE, _SCORES, _PRODUCT = 2500, 500, 14, 16
_SCHEDULERS = 4


@dataclass(frozen=True)
class FlashShape:
    """Each of `warps` warps has `rows` times 16 queries; `keys` keys are in shared memory at a time."""

    warps: int
    rows: int
    keys: int

    @property
    def threads(self) -> int:
        return 32 * self.warps

    @property
    def queries(self) -> int:
        """Queries of a block."""
        return 16 * self.rows * self.warps

    @property
    def name(self) -> str:
        return f"{self.queries}x{self.keys}w{self.warps}"


_SHAPES = (
    FlashShape(4, 2, 64),
    FlashShape(4, 1, 64),
    FlashShape(2, 1, 64),
    FlashShape(1, 1, 64),
)
_MOST_ACCUMULATORS = 64  # of one thread, for a row of results
_WIDEST = 128  # elements of a head


def padded(width: int) -> int:
    """The width of a tile in memory for heads of a width: a power of two, at least 16."""
    size = 16
    while size < width:
        size *= 2
    return size


def shapes_for(depth: int, columns: int) -> tuple[FlashShape, ...]:
    """The shapes that leave enough registers for heads of a depth and a number of columns."""
    if max(depth, columns) > _WIDEST or min(depth, columns) < 1:
        return ()
    wide = padded(max(depth, columns))
    return tuple(shape for shape in _SHAPES if shape.rows * wide <= 2 * _MOST_ACCUMULATORS)


@dataclass(frozen=True)
class FlashWork:
    """Attention of `heads` heads (of all batch entries); with `causal` about half of the keys count."""

    heads: int
    queries: int
    keys: int
    depth: int
    columns: int
    causal: bool

    def microseconds(self, shape: FlashShape) -> float:
        """About how long it takes."""
        blocks = self.heads * -(-self.queries // shape.queries)
        tiles = -(-self.keys // shape.keys)
        if self.causal:
            tiles = (tiles + 1) / 2
        scores = shape.rows * shape.keys // 8
        products = scores * (-(-self.depth // 16) + -(-self.columns // 16) / 1)
        work = _TILE + scores * _SCORES + products * _PRODUCT / (1.5 if shape.rows > 1 else 1)
        alone = _START + tiles * (_TILE + work)
        # Warps beyond the schedulers take turns.
        busy = -(-blocks * shape.warps // (_PROCESSORS * _SCHEDULERS)) * tiles * work
        return max(alone, _START + busy) / (1000 * _GIGAHERTZ)
