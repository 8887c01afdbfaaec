"""Which tiles suit a product by warpgroups, by an estimate of the time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from operator import itemgetter

from mlirt.dialects.kernel.warpgroup import LINE, ROWS, WARPGROUP
from mlirt.dialects.symbolic import Dim
from mlirt.dialects.typical_sizes import typical, typical_values
from mlirt.passes.lowering.lowering import Lowering
from mlirt.passes.lowering.warpgroups.group_tile import SHARED_BYTES, TILES, GroupTile
from mlirt.passes.lowering.warpgroups.kinds import Kind

# Fitted by bench/fit_estimates.py to 1013 measured times of 202 products and convolutions in half precision on an H200,
# in cycles of 1.6 GHz and bytes per cycle; the mean error is 14 %, the tiles that it picks take 2 % more than the best.
_CYCLES_PER_MICROSECOND = 1600
_PROCESSORS = 132
_CLUSTERS = {1: 132, 2: 66, 4: 32, 8: 14}  # that have a place, by their blocks: those of one lie close together
_PRODUCTS = 32.04  # rows x columns of a step that a processor multiplies per cycle
_READ_BYTES = 74.3  # that a processor reads of tiles
_NARROW = 1.18  # more time where two warpgroups multiply by few columns
_LATENCY = 1850  # of a copy, of which a block has as many under way as stages
_MOVED_BYTES = 22230  # of results and extra operands that all processors move
_RESULT, _OPERATION = 9.55, 1.32  # of a thread for a result, and for each operation of the epilogue
_START = 716.3  # of a launch
_STAYING = 727  # more, of one whose blocks stay
_TILE = 964.5  # before the first product of a tile, and after its last result
_PING_PONG_STEP, _PAIR = 296.5, 2  # of a step at least, where more than two warpgroups take turns
_NO_OVERLAP = 1.23  # of the shorter one of products and results where blocks stay
_EXCHANGE, _PARTNER = 3740, 246  # of sums in a cluster, and for each of its blocks
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
    operations: int = 6
    """Of the epilogue, for a result."""
    ahead: int = 0
    """Bytes of an element of the extra operand that tiles may be copied of ahead."""

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
        operations: int = 6,
        ahead: int = 0,
    ) -> GroupWork:
        known = typical_values(lowering.block)
        entries = 1
        for length in batch:
            entries *= typical(length, known)
        steps = -(-typical(depth, known) // kind.depth)
        fixed = isinstance(depth, int)
        sizes = typical(rows, known), typical(columns, known), entries, steps
        return GroupWork(*sizes, fixed, piece, extras, width, operations=operations, ahead=ahead)

    def allows(self, tile: GroupTile) -> bool:
        """Whether a tile can do the work."""
        return tile.fits and tile.columns % self.piece == 0

    def fits(self, tile: GroupTile) -> bool:
        """Whether a tile is of use: no block that shares a sum has nothing to add to it."""
        if (
            not self.allows(tile)
            or tile.extra not in (0, self.ahead)
            or (tile.columns > 32 and tile.columns - 32 >= self.columns)
        ):
            return False
        share = -(-self.steps // tile.split)
        alone = tile.split == 1
        return alone or (self.may_split and share >= _FEWEST_STEPS and share * (tile.split - 1) < self.steps)

    def cycles(self, tile: GroupTile) -> float:
        """About how long it takes."""
        tiles = -(-self.rows // tile.rows) * -(-self.columns // tile.columns) * self.batch
        resident = 1 + tile.double if tile.stays else max(1, min(4, SHARED_BYTES // tile.shared_bytes))
        per_processor = -(-tiles // _CLUSTERS[tile.split])
        side_by_side = min(resident, per_processor)
        rounds = -(-per_processor // side_by_side)
        products = self._products(tile, side_by_side)
        results = self._results(tile, side_by_side, tiles * tile.split)
        if tile.ping_pong:
            # A warpgroup has the time of two tiles for the products and the results of one; what more of them bring
            # is not estimated.
            each = max(products, (products + results) / 2)
            return _START + _STAYING + _TILE + rounds * each + results
        if tile.stays:
            overlap = _NO_OVERLAP / 2 if tile.double else _NO_OVERLAP
            each = max(products, results) + overlap * min(products, results)
            return _START + _STAYING + _TILE + rounds * each
        exchange = _EXCHANGE + _PARTNER * tile.split if tile.split > 1 else 0
        return _START + rounds * (_TILE + products + results + exchange)

    def _products(self, tile: GroupTile, side_by_side: int) -> float:
        """Cycles of a tile's products in one block."""
        busy = max(tile.rows * tile.columns / _PRODUCTS, tile.stage_bytes / _READ_BYTES) * side_by_side
        if tile.rows > ROWS and tile.columns <= ROWS:
            busy *= _NARROW
        step = max(busy * self.line / LINE, _LATENCY / tile.stages, _PING_PONG_STEP if tile.ping_pong > _PAIR else 0)
        return -(-self.steps // tile.split) * step

    def _results(self, tile: GroupTile, side_by_side: int, blocks: int) -> float:
        """Cycles of a tile's epilogue in one block."""
        groups = 1 if tile.ping_pong else tile.consumers
        share = tile.rows * tile.columns / tile.split
        computed = share / (groups * WARPGROUP) * (_RESULT + _OPERATION * self.operations)
        moved = share * side_by_side * self.width * (1 + self.extras - (tile.extra > 0))
        # Warps of several blocks hide what each other waits for.
        return computed * sqrt(side_by_side) + moved * min(blocks, _PROCESSORS) / _MOVED_BYTES


def best(work: GroupWork) -> GroupTile | None:
    """The tile with the least estimated time."""
    fitting = [tile for tile in TILES if work.fits(tile)]
    return min(fitting, key=work.cycles, default=None)


def tile_of(work: GroupWork | None, name: str) -> GroupTile | None:
    """The tile of a name, else the best one; None where there is no work for warpgroups, or the tile cannot do it."""
    tile = None if work is None else GroupTile.named(name) or best(work)
    return tile if work is not None and tile is not None and work.allows(tile) else None


def estimates_of(work: GroupWork | None) -> dict[str, float]:
    """Microseconds with each tile that is of use, the cheapest first, without those that are far from it."""
    if work is None:
        return {}
    fitting = sorted(((work.cycles(tile), tile.name) for tile in TILES if work.fits(tile)), key=itemgetter(0))
    near = [(cycles, name) for cycles, name in fitting if cycles <= _FAR * fitting[0][0]]
    return {name: cycles / _CYCLES_PER_MICROSECOND for cycles, name in near[:_MOST]}
