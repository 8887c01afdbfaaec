"""Tile configurations of a product by warpgroups: tile, stages, split-K over a cluster."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cache

from mlirt.dialects.gpu_device import GpuDevice, WarpgroupEstimates
from mlirt.dialects.kernel.warpgroup import LINE, ROWS, WARPGROUP
from mlirt.kernels.lib.tile import Tile

_NAME = re.compile(r"(\d+)x(\d+)s(\d+)(?:c(\d+)|(t\d?)?(?:e(\d))?(d)?)")
_BARRIER_BYTES = 128  # of the barriers of one kind
_SUM_BYTES = 4
_MAX_COLUMNS_OF_TWO = 128  # columns of all warpgroups of a block where a processor has two, as they share the registers
_QUAD_BYTES = 64  # of an extra operand that the four threads of a row read at once
_MIN_SLOTS = 3
_MAX_COLUMNS = {2: 256, 3: 96, 4: 64}  # by the warpgroups in ping-pong, as they share the registers


@dataclass(frozen=True)
class GroupTile(Tile):
    """`rows` x `columns` results per block; `stages` tiles of the operands are in shared memory at once.

    64 rows are one warpgroup's: such blocks compute one tile, and `split` of them (a cluster) may share its sum. With
    more rows blocks are persistent, and with `ping_pong` warpgroups: while one of them writes the results of a tile,
    another one multiplies the next. `extra` bytes of an operand that each result needs, such as a residual, are copied
    to shared memory ahead of the products. With `double` a processor has two persistent blocks: one writes results
    while the other one multiplies.
    """

    stages: int
    split: int = 1
    ping_pong: int = 0
    extra: int = 0
    double: bool = False

    @staticmethod
    def named(name: str) -> GroupTile | None:
        """The configuration that a text such as `128x256s4`, `64x64s6c4`, `64x64s12t4` or `64x256s4te1` names."""
        match = _NAME.fullmatch(name)
        if match is None:
            return None
        rows, columns, stages, split = (int(part or 1) for part in match.groups()[:4])
        ping_pong = 0 if match[5] is None else int(match[5][1:] or 2)
        return GroupTile(rows, columns, stages, split, ping_pong, int(match[6] or 0), match[7] is not None)

    @property
    def name(self) -> str:
        split = f"c{self.split}" if self.split > 1 else ""
        extra = f"e{self.extra}" if self.extra else ""
        ping_pong = f"t{self.ping_pong}".replace("2", "") if self.ping_pong else ""
        return f"{self.rows}x{self.columns}s{self.stages}{split}{ping_pong}{extra}{'d' * self.double}"

    @property
    def consumers(self) -> int:
        """Warpgroups that multiply."""
        return self.ping_pong or self.rows // ROWS

    @property
    def readers(self) -> int:
        """Warpgroups that read a stage."""
        return self.rows // ROWS

    @property
    def stays(self) -> bool:
        """Whether a block takes several tiles."""
        return self.rows > ROWS or self.ping_pong > 0

    @property
    def threads(self) -> int:
        """With those that start the copies: a warpgroup, or a warp where there is one tile."""
        return self.consumers * WARPGROUP + (WARPGROUP if self.stays else 32)

    def rates(self, device: GpuDevice) -> WarpgroupEstimates:
        """What estimates of a tile follow from."""
        return device.warpgroups

    @property
    def stage_bytes(self) -> int:
        return (self.rows + self.columns) * LINE

    @property
    def pitch(self) -> int:
        """Between rows of accumulators in shared memory, so that neighbouring rows start in other banks."""
        return self.columns + 8

    @property
    def accumulator_bytes(self) -> int:
        """Of the accumulators that the blocks of a cluster add up."""
        return self.rows * self.pitch * _SUM_BYTES if self.split > 1 else 0

    @property
    def slots(self) -> int:
        """Tiles of an extra operand that are in shared memory at once."""
        return max(_MIN_SLOTS, self.ping_pong + 1)

    @property
    def slots_bytes(self) -> int:
        """Of the tiles of an extra operand."""
        return self.slots * self.rows * self.columns * self.extra

    @property
    def shared_bytes(self) -> int:
        barriers = (2 + (self.ping_pong > 0) + 2 * (self.extra > 0)) * _BARRIER_BYTES
        return self.stages * self.stage_bytes + self.accumulator_bytes + self.slots_bytes + barriers

    def fits(self, device: GpuDevice) -> bool:
        """Whether a block has enough shared memory and registers, and its parts whole places."""
        whole = self.rows in (64, 128) and self.columns % 32 == 0 and 32 <= self.columns <= 256
        whole = whole and (
            self.ping_pong == 0 or (self.rows == ROWS and self.columns <= _MAX_COLUMNS.get(self.ping_pong, 0))
        )
        may_split = self.split == 1 or (not self.stays and ROWS % self.split == 0 and self.split <= 8)
        may_split = may_split and (
            not self.double or (self.stays and self.consumers * self.columns <= _MAX_COLUMNS_OF_TWO)
        )
        has_lines = self.extra == 0 or (self.stays and self.columns * self.extra % _QUAD_BYTES == 0)
        return (
            whole
            and may_split
            and has_lines
            and self.stages >= 2
            and self.shared_bytes <= device.shared_bytes_of(1 + self.double)
        )


PERSISTENT = tuple(
    GroupTile(128, columns, stages) for columns, stages in ((256, 4), (224, 5), (192, 5), (160, 6), (128, 6), (64, 8))
)
PING_PONG = tuple(
    GroupTile(64, columns, stages, ping_pong=ping_pong)
    for columns, stages, ping_pong in (
        *((256, 5, 2), (224, 6, 2), (192, 7, 2), (160, 8, 2), (128, 9, 2)),
        *((96, 11, 3), (64, 13, 3), (64, 13, 4)),
    )
)
# Two blocks on a processor, or one with more tiles on their way.
_SHARED_BY_TWO = ((32, 8), (64, 6), (96, 5), (128, 4), (160, 4), (192, 3))
_ALONE = ((32, 16), (64, 12), (96, 9), (128, 7), (160, 8), (192, 6), (256, 5))
_SPLIT = ((32, 8), (64, 6), (96, 5), (128, 4), (64, 11), (96, 8), (128, 6))
SINGLE = (
    *(GroupTile(64, columns, stages) for columns, stages in (*_SHARED_BY_TWO, *_ALONE)),
    *(GroupTile(64, columns, stages, split) for columns, stages in _SPLIT for split in (2, 4, 8)),
)


DOUBLE = tuple(GroupTile(128, 64, stages, extra=extra, double=True) for stages, extra in ((4, 0), (3, 1), (2, 2)))


@cache
def tiles_for(device: GpuDevice) -> tuple[GroupTile, ...]:
    """The tiles to choose from on a device."""
    plain = (*PERSISTENT, *PING_PONG)
    ahead = [_ahead(tile, extra, device) for extra in (1, 2) for tile in plain]
    return tuple(tile for tile in (*plain, *ahead, *DOUBLE, *SINGLE) if tile.fits(device))


def _ahead(tile: GroupTile, extra: int, device: GpuDevice) -> GroupTile:
    """The same tile with as many stages as leave room for an extra operand."""
    given = replace(tile, extra=extra, stages=0)
    return replace(given, stages=min(tile.stages, (device.shared_bytes - given.shared_bytes) // tile.stage_bytes))
