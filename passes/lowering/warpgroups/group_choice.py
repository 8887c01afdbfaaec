"""Which tiles suit a product by warpgroups, by an estimate of the time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlirt.dialects.kernel.warpgroup import LINE
from mlirt.dialects.symbolic import Dim
from mlirt.passes.lowering.lowering import Lowering
from mlirt.passes.lowering.typical_sizes import typical, typical_values
from mlirt.passes.lowering.warpgroups.group_tile import SHARED_BYTES, TILES, GroupTile
from mlirt.passes.lowering.warpgroups.kinds import Kind

# Fitted to 315 measured times of products and convolutions in half precision on an H200, in cycles of 1.6 GHz and bytes
# per cycle; the mean error is 14 %, the tiles that it picks take 5 % longer than the best ones.
_CYCLES_PER_MICROSECOND = 1600
_PROCESSORS = 132
_PRODUCTS = 32  # rows x columns of a step that a processor multiplies per cycle
_ALONE = 1.12  # more time for products where one warpgroup has a processor for itself
_READ_BYTES = 80  # that a processor reads of tiles
_WRITTEN_BYTES = 1860  # of results and extra operands that all processors move
_START = 1750  # of a launch
_STAYING = 900  # more, of one whose blocks stay
_TILE = 1000  # before the first product of a tile, and after its last result
_NO_OVERLAP = 1.6  # of the shorter one of products and results where blocks stay
_TURNING = 1.1  # more time for products of 64 rows one after the other
_EXCHANGE = 2500  # of sums in a cluster
_FAR, _MOST = 1.6, 12  # from the cheapest, and tiles that are worth a measurement
_FEWEST_STEPS = 2  # of a block that shares a sum


@dataclass(frozen=True)
class GroupWork:
    """A batch of products with typical sizes; `steps` are the tiles along the depth.

    The columns of a tile are a multiple of `piece`.
    """

    rows: int
    columns: int
    batch: int
    steps: int
    may_split: bool
    piece: int = 1
    extras: int = 0
    """Operands of the epilogue that are as large as the result."""
    width: int = 2
    """Bytes of an element of the result."""
    line: int = LINE
    """Bytes of a step along the depth."""

    @staticmethod
    def of(
        rows: Dim,
        columns: Dim,
        batch: Sequence[Dim],
        depth: Dim,
        kind: Kind,
        lowering: Lowering,
        piece: int = 1,
        extras: int = 0,
        width: int = 2,
    ) -> GroupWork:
        known = typical_values(lowering.block)
        entries = 1
        for length in batch:
            entries *= typical(length, known)
        steps = -(-typical(depth, known) // kind.depth)
        fixed = isinstance(depth, int)
        return GroupWork(typical(rows, known), typical(columns, known), entries, steps, fixed, piece, extras, width)

    def allows(self, tile: GroupTile) -> bool:
        """Whether a tile can do the work."""
        return tile.fits and tile.columns % self.piece == 0

    def fits(self, tile: GroupTile) -> bool:
        """Whether a tile is of use: no block that shares a sum has nothing to add to it."""
        if not self.allows(tile) or (tile.columns > 32 and tile.columns - 32 >= self.columns):
            return False
        share = -(-self.steps // tile.split)
        alone = tile.split == 1
        return alone or (self.may_split and share >= _FEWEST_STEPS and share * (tile.split - 1) < self.steps)

    def cycles(self, tile: GroupTile) -> float:
        """About how long it takes."""
        tiles = -(-self.rows // tile.rows) * -(-self.columns // tile.columns) * self.batch
        blocks = tiles * tile.split
        resident = 1 if tile.stays else max(1, min(4, SHARED_BYTES // tile.shared_bytes))
        per_processor = -(-blocks // _PROCESSORS)
        side_by_side = min(resident, per_processor)
        rounds = -(-per_processor // side_by_side)
        alone = not tile.stays and side_by_side == 1
        multiplied = tile.rows * tile.columns / _PRODUCTS * (_ALONE if alone else 1)
        step = max(multiplied, tile.stage_bytes / _READ_BYTES) * side_by_side * self.line / LINE
        products = -(-self.steps // tile.split) * step
        moved = tile.rows * tile.columns / tile.split * side_by_side * self.width * (1 + self.extras)
        results = moved * min(blocks, _PROCESSORS) / _WRITTEN_BYTES
        if tile.turns:
            # One warpgroup takes twice as long as two for its results, and has the time of two tiles for both.
            each = max(_TURNING * products, (products + 2 * results) / 2)
            return _START + _STAYING + _TILE + rounds * each + 2 * results
        if tile.stays:
            each = max(products, results) + _NO_OVERLAP * min(products, results)
            return _START + _STAYING + _TILE + rounds * each
        exchange = _EXCHANGE if tile.split > 1 else 0
        return _START + rounds * (_TILE + products + results + exchange)


def best(work: GroupWork) -> GroupTile | None:
    """The tile with the least estimated time."""
    fitting = [tile for tile in TILES if work.fits(tile)]
    return min(fitting, key=work.cycles, default=None)


def tile_of(work: GroupWork | None, name: str) -> GroupTile | None:
    """The tile of a name, else the best one; None where there is no work for warpgroups, or the tile cannot do it."""
    tile = None if work is None else GroupTile.named(name) or best(work)
    return tile if work is not None and tile is not None and work.allows(tile) else None


def names_of(work: GroupWork | None) -> list[str]:
    """The tiles that are of use, the cheapest first, without those that are far from it."""
    if work is None:
        return []
    fitting = sorted(filter(work.fits, TILES), key=work.cycles)
    return [tile.name for tile in fitting if work.cycles(tile) <= _FAR * work.cycles(fitting[0])][:_MOST]


def cost_of(work: GroupWork | None, name: str) -> float:
    """Microseconds with the tile of a name; infinitely many without one."""
    tile = GroupTile.named(name)
    return (
        float("inf") if work is None or tile is None or not tile.fits else work.cycles(tile) / _CYCLES_PER_MICROSECOND
    )
