"""Which tiles suit a product by warpgroups, by an estimate of the time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlirt.dialects.kernel.warpgroup import LINE
from mlirt.dialects.symbolic import Dim
from mlirt.passes.lowering.lowering import Lowering
from mlirt.passes.lowering.typical_sizes import typical, typical_values
from mlirt.passes.lowering.warpgroups.group_tile import TILES, GroupTile
from mlirt.passes.lowering.warpgroups.kinds import Kind

# Of an H100, in cycles and bytes per cycle.
_CYCLES_PER_MICROSECOND = 1600
_PROCESSORS = 132
_MULTIPLIED_BYTES = 4096  # rows x columns x bytes of depth that a processor multiplies per cycle, times 4 / 4
_CACHE_BYTES = 3000  # that all processors read from the L2 cache
_LATENCY = 1200  # from the first copy to the first product
_START, _END = 1800, 900  # of a launch, and of a tile's results
_EXCHANGE = 900  # of sums in a cluster
_FEWEST_STEPS = 2  # of a block that shares a sum


@dataclass(frozen=True)
class GroupWork:
    """A batch of products with typical sizes; `steps` are the tiles of 128 bytes along the depth."""

    rows: int
    columns: int
    batch: int
    steps: int
    may_split: bool

    @staticmethod
    def of(rows: Dim, columns: Dim, batch: Sequence[Dim], depth: Dim, kind: Kind, lowering: Lowering) -> GroupWork:
        known = typical_values(lowering.block)
        entries = 1
        for length in batch:
            entries *= typical(length, known)
        steps = -(-typical(depth, known) // kind.depth)
        fixed = isinstance(depth, int)
        return GroupWork(typical(rows, known), typical(columns, known), entries, steps, fixed)

    def fits(self, tile: GroupTile) -> bool:
        """Whether a tile is of use: no block that shares a sum has nothing to add to it."""
        if not tile.fits or (tile.columns > 32 and tile.columns - 32 >= self.columns):
            return False
        share = -(-self.steps // tile.split)
        alone = tile.split == 1
        return alone or (self.may_split and share >= _FEWEST_STEPS and share * (tile.split - 1) < self.steps)

    def cycles(self, tile: GroupTile) -> float:
        """About how long it takes."""
        tiles = -(-self.rows // tile.rows) * -(-self.columns // tile.columns) * self.batch
        blocks = tiles * tile.split
        resident = 1 if tile.stays else max(1, min(4, 227 * 1024 // tile.shared_bytes))
        share = -(-self.steps // tile.split)
        rounds = -(-blocks // (_PROCESSORS * resident))
        side_by_side = min(resident, -(-blocks // _PROCESSORS))
        multiply = max(tile.rows * tile.columns * LINE * side_by_side / (_MULTIPLIED_BYTES * 2), 64)
        busy = min(blocks, _PROCESSORS * side_by_side)
        read = tile.stage_bytes * busy / _CACHE_BYTES
        results = _END + tile.rows * tile.columns * side_by_side / 32
        total = rounds * (share * max(multiply, read) + results + (0 if tile.stays else _LATENCY))
        return total + _START + _LATENCY + (_EXCHANGE if tile.split > 1 else 0)


def best(work: GroupWork) -> GroupTile | None:
    """The tile with the least estimated time."""
    fitting = [tile for tile in TILES if work.fits(tile)]
    return min(fitting, key=work.cycles, default=None)


def names_of(work: GroupWork) -> list[str]:
    """The tiles that are of use, the cheapest first."""
    return [tile.name for tile in sorted(filter(work.fits, TILES), key=work.cycles)]


def cost_of(work: GroupWork, name: str) -> float:
    """Microseconds with the tile of a name."""
    tile = GroupTile.named(name)
    return float("inf") if tile is None or not tile.fits else work.cycles(tile) / _CYCLES_PER_MICROSECOND
