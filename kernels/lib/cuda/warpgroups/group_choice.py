"""Which tiles suit a product by warpgroups, by an estimate of the time that takes occupancy into account."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import sqrt
from typing import TypeAlias

from mlirt.dialects.gpu_device import GpuDevice
from mlirt.dialects.kernel.warpgroup import LINE, ROWS, WARPGROUP
from mlirt.dialects.symbolic import Dim
from mlirt.dialects.typical_sizes import typical, typical_values
from mlirt.kernels.lib.cuda.warpgroups.group_tile import GroupTile, tiles_for
from mlirt.kernels.lib.cuda.warpgroups.kinds import Kind
from mlirt.kernels.lib.tactics.lowering import Lowering
from mlirt.kernels.lib.tile import worth_measuring

Tiles: TypeAlias = "Callable[[GpuDevice], Sequence[GroupTile]]"
Named: TypeAlias = "Callable[[str], GroupTile | None]"

_PAIR = 2  # warpgroups of a ping-pong that need not wait for each other
_MAX_COST_RATIO, _MAX_MEASURED = 1.6, 12  # from the cheapest, and tiles that are worth a measurement
_MIN_STEPS = 2  # of a block that shares a sum


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
    device: GpuDevice = field(kw_only=True)

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
        return GroupWork(
            *sizes, fixed, piece, extras, width, operations=operations, ahead=ahead, device=lowering.target.gpu
        )

    def allows(self, tile: GroupTile) -> bool:
        """Whether a tile can do the work."""
        return tile.fits(self.device) and tile.columns % self.piece == 0

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
        return alone or (self.may_split and share >= _MIN_STEPS and share * (tile.split - 1) < self.steps)

    def cycles(self, tile: GroupTile) -> float:
        """About how long it takes."""
        device = tile.rates(self.device)
        tiles = tile.cover(self.rows, self.columns) * self.batch
        resident = 1 + tile.double if tile.stays else max(1, min(4, self.device.shared_bytes // tile.shared_bytes))
        per_processor = -(-tiles // self.device.clusters_of(tile.split))
        side_by_side = min(resident, per_processor)
        rounds = -(-per_processor // side_by_side)
        products = self._products(tile, side_by_side)
        results = self._results(tile, side_by_side, tiles * tile.split)
        if tile.ping_pong:
            # A warpgroup has the time of two tiles for the products and the results of one; what more of them bring
            # is not estimated.
            each = max(products, (products + results) / 2)
            return device.start + device.staying + device.tile + rounds * each + results
        if tile.stays:
            overlap = device.no_overlap / 2 if tile.double else device.no_overlap
            each = max(products, results) + overlap * min(products, results)
            return device.start + device.staying + device.tile + rounds * each
        exchange = device.exchange + device.partner * tile.split if tile.split > 1 else 0
        return device.start + rounds * (device.tile + products + results + exchange)

    def microseconds(self, tile: GroupTile) -> float:
        """The same in microseconds."""
        return self.cycles(tile) / tile.rates(self.device).cycles_per_microsecond

    def _products(self, tile: GroupTile, side_by_side: int) -> float:
        """Cycles of a tile's products in one block."""
        device = tile.rates(self.device)
        busy = max(tile.rows * tile.columns / device.products, tile.stage_bytes / device.read_bytes) * side_by_side
        if tile.rows > ROWS and tile.columns <= ROWS:
            busy *= device.narrow
        step = max(
            busy * self.line / LINE,
            device.latency / tile.stages,
            device.ping_pong_step if tile.ping_pong > _PAIR else 0,
        )
        return -(-self.steps // tile.split) * step

    def _results(self, tile: GroupTile, side_by_side: int, blocks: int) -> float:
        """Cycles of a tile's epilogue in one block."""
        device = tile.rates(self.device)
        groups = 1 if tile.ping_pong else tile.consumers
        share = tile.rows * tile.columns / tile.split
        computed = share / (groups * WARPGROUP) * (device.result + device.operation * self.operations)
        moved = share * side_by_side * self.width * (1 + self.extras - (tile.extra > 0))
        # Warps of several blocks hide what each other waits for.
        return computed * sqrt(side_by_side) + moved * min(blocks, self.device.processors) / device.moved_bytes


def best(work: GroupWork, tiles: Tiles = tiles_for) -> GroupTile | None:
    """The tile with the least estimated time."""
    fitting = [tile for tile in tiles(work.device) if work.fits(tile)]
    return min(fitting, key=work.microseconds, default=None)


def tile_of(
    work: GroupWork | None, name: str, tiles: Tiles = tiles_for, named: Named = GroupTile.named
) -> GroupTile | None:
    """The tile of a name, else the best one; None where there is no work for it, or the tile cannot do it."""
    tile = None if work is None else named(name) or best(work, tiles)
    return tile if work is not None and tile is not None and work.allows(tile) else None


def estimates_of(work: GroupWork | None, tiles: Tiles = tiles_for) -> dict[str, float]:
    """Microseconds with each tile that is of use, the cheapest first, without those that are far from it."""
    if work is None:
        return {}
    return worth_measuring(
        ((work.microseconds(tile), tile.name) for tile in tiles(work.device) if work.fits(tile)),
        _MAX_COST_RATIO,
        _MAX_MEASURED,
    )
